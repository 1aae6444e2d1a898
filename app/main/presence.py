"""Builds the adapters of agents on the services that run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from app.config import Configuration
from app.core.adapters import Adapter
from app.core.ports import Forge
from app.main.resources import Resources
from app.services import PAGE, registered_services
from app.services.service import BuildContext
from app.services.web.adapter import WebAdapter


@dataclass(frozen=True, slots=True)
class Presences:
    """The adapters on some services, and the forge with the service it belongs to."""

    adapters: Sequence[Adapter]
    forge: Forge | None = None
    forge_service: str = ""


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
    )
    built = {
        each.name: each.build(context) for each in registered_services() if each.name in running
    }
    forges = [(each.forge, name) for name, each in built.items() if each.forge is not None]
    on_page = map(WebAdapter, base.configuration.agents) if PAGE in running else ()
    adapters = (*on_page, *chain.from_iterable(each.adapters for each in built.values()))
    return Presences(adapters, *forges[0]) if forges else Presences(adapters)


def changed_services(before: Configuration, now: Configuration) -> set[str]:
    """List the services on which some agent is other than before: came, went, or got a new key."""
    every = {*before.services, *now.services}
    return {name for name in every if _standing(before, name) != _standing(now, name)}


def _standing(configuration: Configuration, service: str) -> object:
    if service not in configuration.services:
        return None
    if service == PAGE:
        return tuple(configuration.agents)
    return [
        (agent, given, configuration.webhook_paths(service, agent))
        for (owner, agent), given in configuration.credentials.items()
        if owner == service
    ]
