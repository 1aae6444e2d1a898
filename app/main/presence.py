"""Builds the adapters of agents on the services that run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain

from app.agents.network import read_hosts
from app.core.runtime import Presences
from app.main.resources import Resources
from app.model.delegation import SERVICE
from app.services import PAGE, registered_services
from app.services.service import BuildContext
from app.services.web.adapter import AgentsAdapter, WebAdapter

Build = Callable[[Resources, Collection[str]], Presences]


def presence(base: Resources, services: Collection[str] | None = None) -> Presences:
    """Build all agents' adapters on these services, and the forge if one has it."""
    running = base.configuration.services if services is None else services
    context = BuildContext(
        configuration=base.configuration,
        secret_key=base.secrets.secret_key,
        vault=base.vault,
        clock=base.clock,
        stores=base.stores,
        pictures={
            name: tuple(read_hosts(entry)) for name, entry in base.configuration.agents.items()
        },
        removed=tuple(base.registry.removed()),
    )
    built = {
        each.name: each.build(context) for each in registered_services() if each.name in running
    }
    forges = [(each.forge, name) for name, each in built.items() if each.forge is not None]
    on_page = map(WebAdapter, base.configuration.agents) if PAGE in running else ()
    apart = map(AgentsAdapter, base.configuration.agents) if SERVICE in running else ()
    adapters = (*on_page, *chain.from_iterable(each.adapters for each in built.values()), *apart)
    return Presences(adapters, *forges[0]) if forges else Presences(adapters)
