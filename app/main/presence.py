"""Builds the adapters of agents on the services that run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from app.agents.network import read_hosts
from app.config import Configuration
from app.core.adapters import Adapter
from app.core.repositories.forge import Forge
from app.main.resources import Resources
from app.model.delegation import SERVICE
from app.model.keys import adapter_name
from app.services import PAGE, registered_services
from app.services.service import BuildContext
from app.services.web.adapter import AgentsAdapter, WebAdapter


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


def adapter_names(configuration: Configuration) -> set[str]:
    """List the adapters that a configuration has."""
    on_page = configuration.agents if PAGE in configuration.services else ()
    return {
        *(adapter_name(PAGE, agent) for agent in on_page),
        *(adapter_name(SERVICE, agent) for agent in configuration.agents),
        *(adapter_name(service, agent) for service, agent in configuration.credentials),
    }


def changed_services(before: Configuration, now: Configuration) -> set[str]:
    """List the services on which some agent is other than before: came, went, or got a new key."""
    every = {*_services(before), *_services(now)}
    return {name for name in every if _standing(before, name) != _standing(now, name)}


def is_same(before: Configuration, now: Configuration, adapter: Adapter) -> bool:
    """Tell whether an adapter is set up as before."""
    service, agent = adapter.service_name.partition(":")[0], adapter.agent
    standing = [_standing(each, service) for each in (before, now)]
    return agent in standing[0] and standing[0].get(agent) == standing[1].get(agent)


def _services(configuration: Configuration) -> tuple[str, ...]:
    """List the services that run; places of agents are always there."""
    return (*configuration.services, SERVICE)


def _standing(configuration: Configuration, service: str) -> Mapping[str, object]:
    """Return what the adapter of each agent is built from."""
    if service not in _services(configuration):
        return {}
    if service in {PAGE, SERVICE}:
        return dict.fromkeys(configuration.agents, "")
    return {
        agent: (
            given,
            configuration.webhook_paths(service, agent),
            configuration.agents[agent].network_hosts,
        )
        for (owner, agent), given in configuration.credentials.items()
        if owner == service
    }
