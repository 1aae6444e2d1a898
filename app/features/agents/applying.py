"""Applies a changed configuration to a running bridge: homes, processes, adapters, routes.

An adapter that goes hears nothing new and finishes what it has; one that is replaced listens until
its successor does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from app.agents.checks import check_isolation
from app.agents.isolation import Isolation
from app.agents.registry import archive
from app.config import AgentRecord, Configuration
from app.core.adapters import Adapter
from app.core.runtime import Runtime
from app.features.agents.checkups import Checkups
from app.model import wording
from app.model.delegation import SERVICE
from app.model.keys import adapter_name
from app.services import PAGE
from app.tasks import Tasks

REMOVED = "the agent was removed"
STOP_SECONDS = 30.0
"""How long the turns of an agent that is being removed may take to stop."""
LATE_SECONDS = 60.0
"""After this time no event for a removed agent is under way any more."""
DRAIN_SECONDS = 10.0
"""How long the last messages to an agent that is being removed may take to be answered."""

_LABELS: Final[Mapping[str, object]] = {
    "name": "",
    "former": (),
    "default": False,
    "source": "environment",
    "own_name": "",
    "own_emoji": "",
    "own_colour": "",
}


class AppliedChanges:
    """The parts of a bridge that follow its configuration."""

    def __init__(self, runtime: Runtime, checkups: Checkups) -> None:
        self._runtime = runtime
        self._checkups = checkups
        self._tasks = Tasks("agents' changes")

    async def close(self) -> None:
        """Stop looking at what was changed."""
        await self._tasks.close()

    async def apply(
        self,
        configuration: Configuration,
        records: Sequence[AgentRecord],
        isolations: Mapping[str, Isolation],
        *,
        leads: bool = True,
    ) -> None:
        """Let everything that begins from now on use this configuration.

        `leads` has the work of agents that go stopped; another member does that otherwise.
        """
        runtime, before = self._runtime, self._runtime.configuration
        await self._part(before, configuration, leads=leads)
        runtime.vault.register(*configuration.secret_values())
        told = {agent: runtime.admission.describe(agent) for agent in runtime.agents}
        runtime.admission.forget()
        runtime.agents.replace(configuration, records, isolations)
        for agent in runtime.agents:
            words = runtime.admission.describe(agent)
            if told.get(agent, words) != words:
                runtime.availability.note(agent, check_isolation(words))
        for agent in (*before.agents, *configuration.agents):
            if _terms(before, agent) != _terms(configuration, agent):
                await self._runtime.live.renew(agent)
        await self._replace_adapters(before, configuration)
        self._tasks.start(self._look(), name="probe")

    async def _part(self, before: Configuration, now: Configuration, *, leads: bool) -> None:
        """Let adapters that go hear nothing new, and decide on what they have heard."""
        runtime, adapters = self._runtime, self._runtime.adapters
        going = [name for name in adapter_names(before) - adapter_names(now) if name in adapters]
        await runtime.listeners.replace(going, ())
        runtime.accept(each for name, each in adapters.items() if name not in going)
        if not leads:
            return
        for agent in before.agents.keys() - now.agents.keys():
            sessions = self._runtime.stores.agents.open_sessions(agent)
            words = wording.REMOVED_AT_WORK.format(agent=self._runtime.agents.title(agent))
            for session in sessions:
                await runtime.manager.remove(session, words)
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    for session in sessions:
                        await runtime.reach.rest(session)
        for name in going:
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await runtime.intake.drained(name)
                    await runtime.outbox.drained(name)

    async def _replace_adapters(self, before: Configuration, now: Configuration) -> None:
        """Swap the adapters of the services that changed; those that go are closed."""
        runtime, adapters = self._runtime, self._runtime.adapters
        services = changed_services(before, now)
        built = runtime.connect(services)
        new = {adapter.service_name: adapter for adapter in built.adapters}
        old = {name: each for name, each in adapters.items() if name.partition(":")[0] in services}
        twins = [
            new.pop(name)
            for name, each in old.items()
            if name in new and is_same(before, now, each) and each.adopt(new[name])
        ]
        for adapter in twins:
            del old[adapter.service_name]
        for name in old:
            del adapters[name]
        adapters.update(new)
        if built.forge is not None or runtime.forge.service in services:
            runtime.forge.forge, runtime.forge.service = built.forge, built.forge_service
        for adapter in new.values():
            runtime.intake.open(adapter)
        runtime.accept(adapters.values())
        await runtime.listeners.replace(list(old), list(new.values()))
        runtime.outbox.wake(new)
        for name in old.keys() - new.keys():
            runtime.intake.shut(name)
        for adapter in (*old.values(), *twins):
            await adapter.close()

    async def _look(self) -> None:
        with suppress(Exception):  # logged where it happens; the change is applied already
            await self._checkups.follow()

    async def clear(self, agent: str) -> None:
        """Settle what waits for an agent that is gone, and archive what it left; repeatable."""
        words = wording.REMOVED_AT_WORK.format(agent=self._runtime.agents.title(agent))
        for session in self._runtime.stores.agents.open_sessions(agent):
            await self._runtime.manager.remove(session, words)
        await self._runtime.stores.agents.settle(agent, REMOVED)
        await self._runtime.hooks.forget_agent(agent)
        await asyncio.to_thread(
            archive, self._runtime.configuration.shared_dir, agent, self._runtime.clock.now()
        )
        self._tasks.start(self._settle_late(agent), name=f"last events of {agent}")

    async def suspend(self, agent: str) -> None:
        """Settle what waits for an agent that may come back; all that it has stays; repeatable."""
        for session in self._runtime.stores.agents.open_sessions(agent):
            await self._runtime.manager.stop(session, drop=True)
        await self._runtime.stores.agents.settle(agent, REMOVED)

    async def _settle_late(self, agent: str) -> None:
        """Settle events that were being accepted while their agent was removed."""
        await self._runtime.clock.sleep(LATE_SECONDS)
        if self._runtime.stores.agents.has_work(agent):
            await self._runtime.stores.agents.settle(agent, REMOVED)


def _terms(configuration: Configuration, agent: str) -> object:
    """Return what a process of an agent was started with; its name and its emoji are not."""
    entry = configuration.agents.get(agent)
    if entry is None:
        return None
    return entry.model_copy(update=_LABELS), configuration.keys[agent]


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
