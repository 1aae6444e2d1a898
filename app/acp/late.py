"""Imports late what needs the SDK: ACP's models take 0.9 s, and a bridge listens before that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.acp.launch import AgentLaunch, CurrentLaunches
from app.agents.checks import Admission
from app.agents.registry import Registry
from app.children.warden import Warden
from app.clock import Clock
from app.model.agents import ToolEndpoints
from app.model.ports import AgentLauncher, Counters, OpenedSession, SessionListener
from app.model.types import Session
from app.model.workspaces import Workspace
from app.store.sessions import ProcessStore

if TYPE_CHECKING:
    from app.acp.visits import Greeting


class LateLauncher:
    """A launcher that is imported when it is first needed."""

    def __init__(self, make: Callable[[], AgentLauncher]) -> None:
        self._make = make
        self._launcher: AgentLauncher | None = None
        self._lock = asyncio.Lock()

    async def prepare(self) -> AgentLauncher:
        """Import the launcher, in a thread."""
        async with self._lock:
            if self._launcher is None:
                self._launcher = await asyncio.to_thread(self._make)
            return self._launcher

    async def open(
        self,
        session: Session,
        workspace: Workspace,
        listener: SessionListener,
        *,
        system: str = "",
        replay: bool = False,
    ) -> OpenedSession:
        """Start the agent's process and its session."""
        launcher = await self.prepare()
        return await launcher.open(session, workspace, listener, system=system, replay=replay)

    async def close(self) -> None:
        """Stop every process that is still starting or stopping."""
        if self._launcher is not None:
            await self._launcher.close()


def build_launcher(
    registry: Registry,
    admission: Admission,
    processes: ProcessStore,
    clock: Clock,
    counters: Counters,
    *,
    bridge: str,
    warden: Warden,
    endpoints: ToolEndpoints,
    timeouts: Mapping[str, float],
) -> AgentLauncher:
    """Build the launcher; `timeouts` are seconds by step, where they differ from the defaults."""
    from app.acp.launcher import AcpLauncher  # noqa: PLC0415 - see LateLauncher
    from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher

    return AcpLauncher(
        CurrentLaunches(registry, admission),
        processes,
        clock,
        counters,
        bridge=bridge,
        warden=warden,
        endpoints=endpoints,
        timeouts=AgentTimeouts(**timeouts),
    )


async def greet(
    launch: AgentLaunch,
    workspace: Path,
    counters: Counters,
    *,
    bridge: str,
    timeouts: Mapping[str, float],
) -> Greeting:
    """Start an agent once, outside of any conversation, to see whether it answers.

    Raises:
        AgentError: it does not.
    """

    def prepare() -> Callable[[], Awaitable[Greeting]]:
        from app.acp.peer import AgentTimeouts  # noqa: PLC0415 - see LateLauncher
        from app.acp.visits import Visits  # noqa: PLC0415 - see LateLauncher
        from app.acp.visits import greet as greet_agent  # noqa: PLC0415

        visits = Visits(launch, workspace, counters, bridge, AgentTimeouts(**timeouts))
        return partial(greet_agent, visits)

    visit = await asyncio.to_thread(prepare)
    return await visit()
