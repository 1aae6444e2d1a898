"""Keeps agents alive between turns, as many as allowed, and parks those that nobody uses.

A parked session is one row in the store and no process; its next turn brings it back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

from app.core.ports import AgentLauncher, AgentSession, Clock, Workspaces
from app.core.stores import SessionStore
from app.core.tasks import Tasks
from app.core.types import Session
from app.core.updates import AskRequest, BridgeUpdate, StateUpdate
from app.vault import Vault

logger = logging.getLogger(__name__)

Meanwhile = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class LiveAgent:
    """One session's live process."""

    agent: AgentSession
    generation: int
    how: Literal["live", "new", "resumed", "loaded", "lost"]
    patience: float
    """Seconds after which it is parked when nobody uses it."""
    wishes: tuple[str | None, str | None] = (None, None)
    """The mode and the model it was given."""
    busy: bool = True
    idle_since: float = 0.0
    parking: asyncio.Task[None] | None = None
    """Waits to park it while it idles."""

    def stay(self) -> None:
        """Do not park it."""
        if self.parking is not None:
            self.parking.cancel()
            self.parking = None


class LiveAgents:
    """The agents that run now."""

    def __init__(
        self,
        launcher: AgentLauncher,
        workspaces: Workspaces,
        sessions: SessionStore,
        clock: Clock,
        vault: Vault,
        *,
        max_processes: int,
        idle_seconds: Mapping[str, float],
    ) -> None:
        self._launcher = launcher
        self._workspaces = workspaces
        self._sessions = sessions
        self._clock = clock
        self._vault = vault
        self._max_processes = max_processes
        self._idle_seconds = idle_seconds
        self._live: dict[int, LiveAgent] = {}
        self._ending: dict[int, asyncio.Event] = {}
        self._opening = 0
        self._waiting = 0
        self._room = asyncio.Condition()
        self._tasks = Tasks("agents")

    async def take(self, session: Session, *, meanwhile: Meanwhile = nullcontext) -> LiveAgent:
        """Bring a session's agent to life, or take the one that lives, for one turn.

        While there is no room for its process, `meanwhile` is entered: whoever waits for room
        must not hold what those who could make room are waiting for.

        Raises:
            AgentError: it could not be brought to life.
        """
        live = self._live.get(session.id)
        if live is not None and live.agent.alive and live.generation == session.generation:
            live.stay()
            live.busy = True
            live.how = "live"
            await self._adjust(session.id, live)
            return live
        await self.end(session.id)
        async with self._room_for_one(meanwhile):
            workspace = await self._workspaces.open(session)
            opened = await self._launcher.open(
                session, workspace, _Between(session, self._sessions, self._vault)
            )
            patience = self._idle_seconds.get(session.key.agent, 0.0)
            live = LiveAgent(opened.session, session.generation, opened.how, patience)
            live.wishes = (session.mode, session.model)
            self._live[session.id] = live
        await self._adjust(session.id, live)
        return live

    async def give_back(self, session_id: int) -> None:
        """Say that a turn is over: the agent idles from now on."""
        live = self._live.get(session_id)
        if live is None:
            return
        if not live.agent.alive:
            await self.end(session_id)
            return
        live.busy = False
        live.idle_since = self._clock.monotonic()
        live.parking = self._tasks.start(
            self._park(session_id, live), name=f"parking of session {session_id}"
        )
        await self._tell_room()

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
        ends = [self.end(session_id) for session_id in list(self._live)]
        for failure in await asyncio.gather(*ends, return_exceptions=True):
            if failure is not None:
                logger.error("an agent could not be ended", exc_info=failure)

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

    async def _adjust(self, session_id: int, live: LiveAgent) -> None:
        """Give an agent the mode and model that were wished for while it was starting or busy."""
        session = self._sessions.session(session_id)
        if session is None or (session.mode, session.model) == live.wishes:
            return
        await live.agent.configure(mode=session.mode, model=session.model)
        live.wishes = (session.mode, session.model)

    async def _tell_room(self) -> None:
        async with self._room:
            self._room.notify_all()

    @asynccontextmanager
    async def _room_for_one(self, meanwhile: Meanwhile) -> AsyncIterator[None]:
        """Have room for one more process until it lives or could not be brought to life."""
        claimed = False
        try:
            claimed = await self._claim(patient=False)
            if not claimed:
                async with meanwhile():
                    claimed = await self._claim(patient=True)
            yield
        except BaseException:
            if claimed:
                self._opening -= 1
                await self._tell_room()
            raise
        self._opening -= 1

    async def _claim(self, *, patient: bool) -> bool:
        """Claim room for one process, who idles longest makes it; the impatient do not queue."""
        async with self._room:
            if self._waiting and not patient:
                return False
            self._waiting += patient
            try:
                while (longest := self._longest_idle()) is None and not self._has_room():
                    if not patient:
                        return False
                    await self._room.wait()
            finally:
                self._waiting -= patient
            gone = None if longest is None or self._has_room() else self._live.pop(longest)
            self._opening += 1
        if longest is not None and gone is not None:
            try:
                await self._close(longest, gone)
            except BaseException:
                self._opening -= 1
                await self._tell_room()
                raise
        return True

    def _has_room(self) -> bool:
        return len(self._live) + self._opening < self._max_processes

    def _longest_idle(self) -> int | None:
        idle = [(live.idle_since, key) for key, live in self._live.items() if not live.busy]
        return min(idle)[1] if idle else None

    async def _close(self, session_id: int, live: LiveAgent) -> None:
        live.stay()
        ended = self._ending[session_id] = asyncio.Event()
        try:
            await live.agent.close()
            await self._workspaces.close(session_id)
        finally:
            del self._ending[session_id]
            ended.set()

    async def _park(self, session_id: int, live: LiveAgent) -> None:
        await self._clock.sleep(live.patience)
        live.parking = None
        logger.info("session %d is parked", session_id)
        await self.end(session_id)


class _Between:
    """Hears what an agent says about itself between turns."""

    def __init__(self, session: Session, sessions: SessionStore, vault: Vault) -> None:
        self._session = session
        self._sessions = sessions
        self._vault = vault

    async def on_update(self, update: BridgeUpdate) -> None:
        """Keep a new title; the rest belongs to turns."""
        if isinstance(update, StateUpdate) and update.what == "title" and update.value:
            title = self._vault.redact(str(update.value))
            await self._sessions.rename(self._session.id, title)

    async def on_ask(self, _request: AskRequest) -> str | None:
        """Refuse: nobody asked the agent to do anything."""
        return None
