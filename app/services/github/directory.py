"""Who our agents are on GitHub: told by their adapters as they find out, asked by all of them.

Who answers is decided once for all agents, so every adapter must know every agent's login.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from app.services.github.mentions import Identities, Identity

OTHERS_SECONDS = 10.0
"""How long an adapter waits at its start for the others to find out who they are."""


class Directory:
    """The agents that have an App, and what is known of each."""

    def __init__(self, agents: Iterable[str]) -> None:
        self._awaited = {agent: asyncio.Event() for agent in agents}
        self._known: dict[str, Identity] = {}
        self.us = Identities()

    def introduce(self, identity: Identity) -> None:
        """Tell who an agent is."""
        self._known[identity.agent] = identity
        self.us = Identities.of(self._known.values())
        self._awaited[identity.agent].set()

    def of(self, agent: str) -> Identity | None:
        """Tell who an agent is, if it is known."""
        return self._known.get(agent)

    async def complete(self, agent: str) -> None:
        """Wait until an agent is known, and a moment for the others."""
        await self._awaited[agent].wait()
        try:
            async with asyncio.timeout(OTHERS_SECONDS):
                for known in self._awaited.values():
                    await known.wait()
        except TimeoutError:
            return
