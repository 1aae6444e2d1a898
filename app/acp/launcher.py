"""How an agent is brought to life: its process, the handshake, and its conversation, old or new.

The mode an agent wakes up in is never trusted: the configured one is set after every beginning,
or the agent is ended. Whatever fails or is cancelled on the way leaves no process behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from app.acp.handshake import Handshake, NotRestored
from app.acp.launch import AgentLaunch, start
from app.acp.peer import AT_ONCE, POLITE, AgentPeer, AgentTimeouts
from app.acp.session import AcpSession
from app.children.census import new_marker
from app.children.process import Child
from app.core.clock import persist
from app.core.ports import AgentListener, Clock, Counters
from app.core.stores.housekeeping import ProcessStore
from app.core.tasks import Tasks
from app.core.types import ProcessRecord, Session
from app.errors import NotFound
from app.logs import bind

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0  # what the polite end of a process takes at most, all its steps together


@dataclass(frozen=True, slots=True)
class Opened:
    """What came of bringing an agent to life."""

    session: AcpSession
    how: Literal["new", "resumed", "loaded", "lost"]


class AcpLauncher:
    """Brings agents to life; implements the core's port `AgentLauncher`."""

    def __init__(
        self,
        agents: Mapping[str, AgentLaunch],
        processes: ProcessStore,
        clock: Clock,
        counters: Counters,
        *,
        bridge: str,
        timeouts: AgentTimeouts | None = None,
    ) -> None:
        self._agents = agents
        self._processes = processes
        self._clock = clock
        self._counters = counters
        self._bridge = bridge
        self._timeouts = timeouts or AgentTimeouts()
        self._tasks = Tasks("acp")
        self._peers: dict[str, AgentPeer] = {}

    async def open(self, session: Session, workspace: Path, listener: AgentListener) -> Opened:
        """Start the agent's process and its conversation, an earlier one if there was one.

        Raises:
            NotFound: there is no such agent.
            AgentError: it could not be started or did not answer.
        """
        launch = self._agents.get(session.key.agent)
        if launch is None:
            raise NotFound("agent", session.key.agent)
        # Tasks inherit this: whatever is logged for the agent from now on names it.
        with bind(agent=launch.name, session=str(session.key)):
            await self._rest(launch, session)
            try:
                return await self._bring_to_life(launch, session, workspace, listener)
            except NotRestored as failure:
                logger.warning("it starts without its conversation: %s", failure)
            blank = replace(session, acp_session_id=None)
            opened = await self._bring_to_life(launch, blank, workspace, listener)
            return replace(opened, how="lost")

    async def close(self) -> None:
        """End every process that is still there."""
        for peer in self._peers.values():
            peer.abandon(POLITE)
        await self._tasks.close(grace=CLOSE_SECONDS)

    async def _rest(self, launch: AgentLaunch, session: Session) -> None:
        """Let a conversation settle on the agent's disk before it is read again."""
        rested = self._clock.now() - session.updated_at
        missing = launch.settle_seconds_before_load - rested
        if session.acp_session_id is not None and missing > 0:
            await self._clock.sleep(missing)

    async def _bring_to_life(
        self, launch: AgentLaunch, session: Session, workspace: Path, listener: AgentListener
    ) -> Opened:
        marker = new_marker(self._bridge)
        child = await start(launch, workspace, marker, launch.outgoing(session))
        recording = self._record(child, session)
        peer = AgentPeer(
            launch.name,
            child,
            listener,
            counters=self._counters,
            tasks=self._tasks,
            forget=lambda: self._forget(child, recording),
        )
        self._peers[child.marker] = peer
        try:
            begun = await Handshake(peer, launch, workspace, self._timeouts).begin(
                session.acp_session_id
            )
            conversation = AcpSession(peer, begun, self._timeouts)
            await conversation.configure(mode=None, model=session.model or launch.model)
            await conversation.choose(launch.options)
            # Last, so that no other choice changes it again.
            await conversation.configure(mode=session.mode or launch.mode, model=None)
            await recording
        except BaseException:
            await peer.close(AT_ONCE)
            raise
        return Opened(conversation, begun.how)

    def _record(self, child: Child, session: Session) -> asyncio.Task[None]:
        """Begin to write the process down.

        Beside the handshake, not before it: that costs no time, and what a crash leaves behind
        meanwhile is found by its marker.
        """
        record = ProcessRecord(
            session.key.agent, session.id, child.group, child.started, child.marker
        )
        return self._tasks.start(
            persist(self._clock, self._processes.started, record), name=f"record {child.name}"
        )

    async def _forget(self, child: Child, recording: asyncio.Task[None]) -> None:
        self._peers.pop(child.marker, None)
        recording.cancel()
        await asyncio.wait([recording])
        await self._processes.ended(child.marker)
