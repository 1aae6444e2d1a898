"""One visit: an agent's process and the connection to it, for as long as somebody is there.

Whatever happens during a visit, no process is left behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.acp.launch import AgentLaunch, start
from app.acp.peer import AgentPeer, AgentTimeouts
from app.children.census import new_marker
from app.core.folders import beside
from app.core.ports import AgentListener, Counters
from app.core.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Visits:
    """How one agent is visited."""

    launch: AgentLaunch
    workspace: Path
    counters: Counters
    bridge: str
    """Names the bridge in the markers of processes, so that it finds what a crash left behind."""
    timeouts: AgentTimeouts = AgentTimeouts()  # noqa: RUF009 - frozen

    @asynccontextmanager
    async def begin(self, listener: AgentListener) -> AsyncIterator[AgentPeer]:
        """Start the agent, and end it afterwards.

        Raises:
            AgentNotStarted: its command is missing or cannot be run.
        """
        tasks = Tasks("visit")
        for folder in (self.workspace, beside(self.workspace)):
            await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        child = await start(self.launch, self.workspace, new_marker(self.bridge))
        peer = AgentPeer(
            self.launch.name,
            child,
            listener,
            counters=self.counters,
            tasks=tasks,
            forget=_nothing_is_kept,
        )
        try:
            yield peer
        finally:
            await peer.close()
            await tasks.close()


async def _nothing_is_kept() -> None:
    """Do nothing: a visit is on no record."""
