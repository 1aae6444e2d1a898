"""Keeps agents alive between turns, as many as allowed, and parks those that nobody uses.

A parked session is one row in the store and no process; its next turn brings it back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.ports import (
    AgentLauncher,
    AgentSession,
    Clock,
    SessionStore,
    Workspaces,
)
from app.core.tasks import Tasks
from app.core.types import AskRequest, BridgeUpdate, Session, StateUpdate

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class LiveAgent:
    """One session's live process."""

    agent: AgentSession
    generation: int
    how: Literal["live", "new", "resumed", "loaded", "lost"]
    busy: bool = True
    idle_since: float = 0.0


class LiveAgents:
    """The agents that run now."""

    def __init__(
        self,
        launcher: AgentLauncher,
        workspaces: Workspaces,
        sessions: SessionStore,
        clock: Clock,
        *,
        max_processes: int,
        idle_seconds: Mapping[str, float],
    ) -> None:
        self._launcher = launcher
        self._workspaces = workspaces
        self._sessions = sessions
        self._clock = clock
        self._max_processes = max_processes
        self._idle_seconds = idle_seconds
        self._live: dict[int, LiveAgent] = {}
        self._ending: dict[int, asyncio.Event] = {}
        self._opening = 0
        self._room = asyncio.Condition()
        self._tasks = Tasks("agents")
        self._parking: asyncio.Task[None] | None = None

    async def take(self, session: Session) -> LiveAgent:
        """Bring a session's agent to life, or take the one that lives, for one turn.

        Raises:
            AgentError: it could not be brought to life.
        """
        live = self._live.get(session.id)
        if live is not None and live.agent.alive and live.generation == session.generation:
            live.busy = True
            live.how = "live"
            return live
        await self.end(session.id)
        await self._make_room()
        try:
            workspace = await self._workspaces.open(session)
            opened = await self._launcher.open(
                session, workspace, _Between(session, self._sessions)
            )
        finally:
            self._opening -= 1
        live = LiveAgent(opened.session, session.generation, opened.how)
        self._live[session.id] = live
        return live

    async def give_back(self, session_id: int) -> None:
        """Say that a turn is over: the agent idles from now on."""
        live = self._live.get(session_id)
        if live is None:
            return
        live.busy = False
        live.idle_since = self._clock.monotonic()
        if not live.agent.alive:
            await self.end(session_id)
        await self._tell_room()
        if self._parking is None or self._parking.done():
            self._parking = self._tasks.start(self._park_idle(), name="parking")

    async def end(self, session_id: int) -> None:
        """End a session's process, if it has one; whoever comes second waits for the end."""
        live = self._live.pop(session_id, None)
        if live is not None:
            await self._close(session_id, live)
            await self._tell_room()
        elif (ending := self._ending.get(session_id)) is not None:
            await ending.wait()

    async def close(self) -> None:
        """End every process."""
        await self._tasks.close()
        async with asyncio.TaskGroup() as group:
            for session_id in list(self._live):
                group.create_task(self.end(session_id))

    async def configure(
        self, session_id: int, *, mode: str | None = None, model: str | None = None
    ) -> None:
        """Set mode or model of an agent that lives; others get them when they start.

        Raises:
            AgentError: it does not offer that.
        """
        live = self._live.get(session_id)
        if live is not None and live.agent.alive:
            await live.agent.configure(mode=mode, model=model)

    async def _tell_room(self) -> None:
        async with self._room:
            self._room.notify_all()

    async def _make_room(self) -> None:
        """Wait until one more process may run; who idles longest goes first."""
        async with self._room:
            while len(self._live) + self._opening >= self._max_processes:
                idle = [(live.idle_since, key) for key, live in self._live.items() if not live.busy]
                if not idle:
                    await self._room.wait()
                    continue
                longest = min(idle)[1]
                await self._close(longest, self._live.pop(longest))
            self._opening += 1

    async def _close(self, session_id: int, live: LiveAgent) -> None:
        ended = self._ending[session_id] = asyncio.Event()
        try:
            await live.agent.close()
        finally:
            del self._ending[session_id]
            ended.set()

    async def _park_idle(self) -> None:
        while idle := {key: live for key, live in self._live.items() if not live.busy}:
            now = self._clock.monotonic()
            due = {key: self._due(key, live) for key, live in idle.items()}
            for key, when in due.items():
                if when <= now and not idle[key].busy:
                    logger.info("session %d is parked", key)
                    await self.end(key)
            later = [when for when in due.values() if when > now]
            if later:
                await self._clock.sleep(min(later) - now)

    def _due(self, session_id: int, live: LiveAgent) -> float:
        session = self._sessions.session(session_id)
        name = session.key.agent if session is not None else ""
        return live.idle_since + self._idle_seconds.get(name, 0.0)


class _Between:
    """Hears what an agent says about itself between turns."""

    def __init__(self, session: Session, sessions: SessionStore) -> None:
        self._session = session
        self._sessions = sessions

    async def on_update(self, update: BridgeUpdate) -> None:
        """Keep a new title; the rest belongs to turns."""
        if isinstance(update, StateUpdate) and update.what == "title" and update.value:
            await self._sessions.rename(self._session.id, str(update.value))

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Refuse: nobody asked the agent to do anything."""
        return None
