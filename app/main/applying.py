"""Applies a changed configuration to a running bridge: homes, processes, adapters, routes.

An adapter that goes hears nothing new and finishes what it has; one that is replaced listens until
its successor does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from app.agents.availability import check_isolation
from app.agents.enrolling import archive
from app.agents.isolation import Shelter
from app.config import AgentRecord, Configuration
from app.main.presence import Build, adapter_names, changed_services, is_same
from app.main.resources import Resources
from app.main.wiring import Joined
from app.model import wording
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

    def __init__(
        self,
        base: Resources,
        joined: Joined,
        build: Build,
        *,
        applied: Callable[[Collection[str]], None],
        probe: Callable[[], Awaitable[None]],
    ) -> None:
        """Apply changes to the parts; `probe` then looks at the agents.

        `applied` shows and opens what there is now, but for adapters that are about to go.
        """
        self._base = base
        self._joined = joined
        self._build = build
        self._applied = applied
        self._probe = probe
        self._tasks = Tasks("agents' changes")

    async def close(self) -> None:
        """Stop looking at what was changed."""
        await self._tasks.close()

    async def apply(
        self,
        configuration: Configuration,
        records: Sequence[AgentRecord],
        shelters: Mapping[str, Shelter],
        *,
        leads: bool = True,
    ) -> None:
        """Let everything that begins from now on use this configuration.

        `leads` has the work of agents that go stopped; another member does that otherwise.
        """
        base, before = self._base, self._base.configuration
        await self._part(before, configuration, leads=leads)
        base.vault.register(*configuration.secret_values())
        before_words = {agent: base.admission.describe(agent) for agent in base.registry}
        base.admission.forget()
        base.registry.replace(configuration, records, shelters)
        for agent, words in before_words.items():
            if agent in base.registry and words != base.admission.describe(agent):
                now = check_isolation(base.admission.describe(agent))
                self._joined.availability.note(agent, now)
        for agent in (*before.agents, *configuration.agents):
            if _terms(before, agent) != _terms(configuration, agent):
                await self._joined.live.renew(agent)
        await self._replace_adapters(before, configuration)
        self._tasks.start(self._look(), name="probe")

    async def _part(self, before: Configuration, now: Configuration, *, leads: bool) -> None:
        """Let adapters that go hear nothing new, and decide on what they have heard."""
        adapters, joined = self._joined.adapters, self._joined
        going = [name for name in adapter_names(before) - adapter_names(now) if name in adapters]
        await joined.listeners.replace(going, ())
        self._applied(going)
        if not leads:
            return
        for agent in before.agents.keys() - now.agents.keys():
            sessions = self._base.stores.agents.open_sessions(agent)
            words = wording.REMOVED_AT_WORK.format(agent=self._base.registry.title(agent))
            for session in sessions:
                await joined.manager.remove(session, words)
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    for session in sessions:
                        await joined.reach.rest(session)
        for name in going:
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await joined.intake.drained(name)
                    await joined.outbox.drained(name)

    async def _replace_adapters(self, before: Configuration, now: Configuration) -> None:
        """Swap the adapters of the services that changed; those that go are closed."""
        adapters, joined = self._joined.adapters, self._joined
        services = changed_services(before, now)
        built = self._build(self._base, services)
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
        if built.forge is not None or joined.forge.service in services:
            joined.forge.forge, joined.forge.service = built.forge, built.forge_service
        for adapter in new.values():
            joined.intake.open(adapter)
        self._applied(())
        await joined.listeners.replace(list(old), list(new.values()))
        joined.outbox.wake(new)
        for name in old.keys() - new.keys():
            joined.intake.shut(name)
        for adapter in (*old.values(), *twins):
            await adapter.close()

    async def _look(self) -> None:
        with suppress(Exception):  # logged where it happens; the change is applied already
            await self._probe()

    async def clear(self, agent: str) -> None:
        """Settle what waits for an agent that is gone, and archive what it left; repeatable."""
        words = wording.REMOVED_AT_WORK.format(agent=self._base.registry.title(agent))
        for session in self._base.stores.agents.open_sessions(agent):
            await self._joined.manager.remove(session, words)
        await self._base.stores.agents.settle(agent, REMOVED)
        await self._joined.hooks.forget_agent(agent)
        await asyncio.to_thread(
            archive, self._base.configuration.shared_dir, agent, self._base.clock.now()
        )
        self._tasks.start(self._settle_late(agent), name=f"last events of {agent}")

    async def suspend(self, agent: str) -> None:
        """Settle what waits for an agent that may come back; all that it has stays; repeatable."""
        for session in self._base.stores.agents.open_sessions(agent):
            await self._joined.manager.stop(session, drop=True)
        await self._base.stores.agents.settle(agent, REMOVED)

    async def _settle_late(self, agent: str) -> None:
        """Settle events that were being accepted while their agent was removed."""
        await self._base.clock.sleep(LATE_SECONDS)
        if self._base.stores.agents.has_work(agent):
            await self._base.stores.agents.settle(agent, REMOVED)


def _terms(configuration: Configuration, agent: str) -> object:
    """Return what a process of an agent was started with; its name and its emoji are not."""
    entry = configuration.agents.get(agent)
    if entry is None:
        return None
    return entry.model_copy(update=_LABELS), configuration.keys[agent]
