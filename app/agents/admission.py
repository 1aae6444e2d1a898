"""Lets an agent start only if a probe from inside finds it isolated as required.

An agent that must be isolated and is not stays closed until its entry changes or the bridge
restarts. A probe that could not run closes it too, but is retried with the next turn. A change of
its isolation since it was last seen is said until a person has seen it: no agent loses its
isolation silently.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.agents.isolation import Shelter, must_be_isolated, try_shelter
from app.agents.registry import Registry
from app.children.probe import ProbeResult
from app.children.sandbox import Plain
from app.config import AgentConfig, AgentRecord, Configuration
from app.errors import AgentNotStarted

logger = logging.getLogger(__name__)

_WORDS: Final[Sequence[Mapping[str, str]]] = (
    {"none": "not isolated", "bubblewrap": "isolated (bubblewrap)"},
    {"own": "its own home", "user": "your home", "path": "a home that its sessions share"},
    {
        "host": "this machine's network",
        "open": "its own network",
        "restricted": "a list of hosts",
        "none": "no network",
    },
)
"""What the three codes of an isolation mean: sandbox, home, network."""


class Admission:
    """The verdicts on all agents."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._verdicts: dict[str, ProbeResult] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def judge(self, agent: str) -> str:
        """Probe an agent, unless the verdict is final, and describe its isolation."""
        async with self._locks[agent]:
            verdict = self._verdicts.get(agent)
            if verdict is None or not verdict.conclusive:
                shelter = self._registry.shelters[agent]
                verdict = await try_shelter(self._registry.configuration, shelter)
                self._verdicts[agent] = verdict
        return self.describe(agent)

    async def admit(self, agent: str) -> None:
        """Check that an agent may start.

        Raises:
            AgentNotStarted: it must be isolated and is not.
        """
        if not must_be_isolated(self._registry.configuration, self._registry[agent].config):
            return
        words = await self.judge(agent)
        if self._is_closed(agent):
            raise AgentNotStarted(
                agent,
                f"it must be isolated: {words}",
                "Run `agent-bridge doctor`, fix the cause and restart the bridge.",
            )

    def describe(self, agent: str) -> str:
        """Say how an agent is isolated, as far as is known without another probe."""
        if agent not in self._verdicts:
            return self._registry.shelters[agent].words
        words = self._verdicts[agent].words
        return f"closed, {words}" if self._is_closed(agent) else words

    def forget(self) -> None:
        """Judge every agent again: when agents change, what each must not see changes too."""
        self._verdicts.clear()

    def closed(self) -> dict[str, str]:
        """Return the closed agents that the bridge is there for, each with the reason."""
        return {
            agent: verdict.words
            for agent, verdict in self._verdicts.items()
            if agent in self._registry
            and not self._registry[agent].config.is_left_over
            and self._is_closed(agent)
        }

    def _is_closed(self, agent: str) -> bool:
        return (
            agent in self._registry  # else it was removed meanwhile
            and must_be_isolated(self._registry.configuration, self._registry[agent].config)
            and not self._verdicts[agent].isolated
        )


def note_isolation(
    configuration: Configuration, records: Sequence[AgentRecord], shelters: Mapping[str, Shelter]
) -> tuple[AgentRecord, ...]:
    """Return the records with how each agent is isolated now; log what changed."""
    agents = configuration.agents
    noted = tuple(
        note_one(record, agents[record.id], shelters[record.id]) if record.id in agents else record
        for record in records
    )
    for before, record in zip(records, noted, strict=True):
        if before.isolation != record.isolation and record.isolation_was:
            logger.warning("%s: %s", record.name, describe_change(record))
    return noted


def note_one(record: AgentRecord, entry: AgentConfig, shelter: Shelter) -> AgentRecord:
    """Return an agent's record with how it is isolated now, and before if that changed."""
    now = _measure(entry, shelter)
    was = record.isolation_was if record.isolation == now else record.isolation
    return replace(record, source=entry.source, isolation=now, isolation_was=was)


def describe_change(record: AgentRecord) -> str:
    """Say how an agent was isolated and how it is now; empty if no change is unseen."""
    if not record.isolation_was:
        return ""
    before, now = _spell(record.isolation_was), _spell(record.isolation)
    return f"Its isolation changed. Before: {before}. Now: {now}."


def _measure(entry: AgentConfig, shelter: Shelter) -> str:
    sandbox = "none" if isinstance(shelter.sandbox, Plain) else "bubblewrap"
    home = "path" if isinstance(entry.home, Path) else entry.home
    network = "host" if shelter.network is None else shelter.network.rules.mode
    return f"{sandbox} {home} {network}"


def _spell(codes: str) -> str:
    known = zip(_WORDS, codes.split(), strict=False)
    return ", ".join(words.get(code, code) for words, code in known)
