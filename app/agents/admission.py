"""Lets an agent start only if a probe from inside finds it isolated as required.

An agent that must be isolated and is not stays closed until its entry changes or the bridge
restarts. A probe that could not run closes it too, but is retried with the next turn.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from app.agents.isolation import Shelter, must_be_isolated, try_shelter
from app.agents.registry import Registry
from app.children.probe import ProbeResult
from app.errors import AgentNotStarted


class Admission:
    """The verdicts on all agents."""

    def __init__(self, registry: Registry, shelters: Mapping[str, Shelter]) -> None:
        self._registry = registry
        self._shelters = shelters
        self._verdicts: dict[str, ProbeResult] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def judge(self, agent: str) -> str:
        """Probe an agent, unless the verdict is final, and describe its isolation."""
        async with self._locks[agent]:
            verdict = self._verdicts.get(agent)
            if verdict is None or not verdict.conclusive:
                verdict = await try_shelter(self._registry.configuration, self._shelters[agent])
                self._verdicts[agent] = verdict
        return f"closed, {verdict.words}" if self._is_closed(agent) else verdict.words

    async def admit(self, agent: str) -> None:
        """Check that an agent may start.

        Raises:
            AgentNotStarted: it must be isolated and is not.
        """
        if not must_be_isolated(self._registry.configuration, self._registry.get(agent)):
            return
        words = await self.judge(agent)
        if self._is_closed(agent):
            raise AgentNotStarted(
                agent,
                f"it must be isolated: {words}",
                "Run `agent-bridge doctor`, fix the cause and restart the bridge.",
            )

    def forget(self) -> None:
        """Judge every agent again: when agents change, what each must not see changes too."""
        self._verdicts.clear()

    def closed(self) -> dict[str, str]:
        """Return the closed agents that the bridge is there for, each with the reason."""
        return {
            agent: verdict.words
            for agent, verdict in self._verdicts.items()
            if agent in self._registry
            and not self._registry.get(agent).is_left_over
            and self._is_closed(agent)
        }

    def _is_closed(self, agent: str) -> bool:
        entry = self._registry.get(agent)
        return (
            must_be_isolated(self._registry.configuration, entry)
            and not self._verdicts[agent].isolated
        )
