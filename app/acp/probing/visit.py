"""Runs an agent's process and its connection for the duration of one visit.

No visit leaves a process behind, however it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.acp.launch import AgentLaunch, make_workspace, start
from app.acp.peer import AgentPeer, AgentTimeouts
from app.children.proc_table import new_marker
from app.model.ports import AgentListener, Counters
from app.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Visits:
    """Runs visits to one agent."""

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
        workspace = await asyncio.to_thread(make_workspace, self.launch, self.workspace)
        child = await start(self.launch, workspace, new_marker(self.bridge))
        peer = AgentPeer(
            self.launch.name,
            child,
            listener,
            counters=self.counters,
            tasks=tasks,
            forget=_forget_nothing,
        )
        try:
            yield peer
        finally:
            await peer.close()
            await tasks.close()


async def _forget_nothing() -> None:
    """Do nothing: a visit is not recorded."""
