"""Keeps agents alive between turns, as many as allowed, and parks those that nobody uses.

A parked session is one row in the store and no process; its next turn brings it back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.core.ports import AgentLauncher, AgentSession, Clock, Workspaces
from app.core.stores.sessions import SessionStore
from app.core.tasks import Tasks
from app.core.types import Session
from app.core.updates import AskRequest, BridgeUpdate, StateUpdate
from app.vault import Vault

logger = logging.getLogger(__name__)

STARTS = 30
STARTS_SECONDS = 60.0
"""A session's process is started no more often than this: people do not come back so often, and a
program that ends at once would otherwise be started for ever."""

Meanwhile = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class LiveAgent:
    """One session's live process."""

    agent: AgentSession
    name: str
    generation: int
    how: Literal["live", "new", "resumed", "loaded", "lost"]
    patience: float
    """Seconds after which it is parked when nobody uses it."""
    workspace: Path
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
        of_agent: Mapping[str, int] | None = None,
    ) -> None:
        """Keep so many processes alive, and of some agents fewer."""
        self._launcher = launcher
        self._workspaces = workspaces
        self._sessions = sessions
        self._clock = clock
        self._vault = vault
        self._max_processes = max_processes
        self._idle_seconds = idle_seconds
        self._of_agent = of_agent or {}
        self._live: dict[int, LiveAgent] = {}
        self._ending: dict[int, asyncio.Event] = {}
        self._opening: Counter[str] = Counter()
        self._starts: dict[int, deque[float]] = {}
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
        await self._pace(session.id, meanwhile)
        async with self._room_for_one(session.key.agent, meanwhile):
            workspace = await self._workspaces.open(session)
            opened = await self._launcher.open(
                session, workspace, _Between(session, self._sessions, self._vault)
            )
            patience = self._idle_seconds.get(session.key.agent, 0.0)
            live = LiveAgent(
                opened.session,
                session.key.agent,
                session.generation,
                opened.how,
                patience,
                workspace,
            )
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

    async def _pace(self, session_id: int, meanwhile: Meanwhile) -> None:
        """Let a session's process not be started too often: one that dies at once never settles."""
        now = self._clock.monotonic()
        starts = self._starts.setdefault(session_id, deque(maxlen=STARTS))
        if len(starts) == STARTS and (left := starts[0] + STARTS_SECONDS - now) > 0:
            logger.warning("session %d was started %d times: it waits", session_id, STARTS)
            async with meanwhile():
                await self._clock.sleep(left)
        starts.append(self._clock.monotonic())
        old = [key for key, times in self._starts.items() if now - times[-1] > STARTS_SECONDS]
        for key in old:
            del self._starts[key]

    @asynccontextmanager
    async def _room_for_one(self, agent: str, meanwhile: Meanwhile) -> AsyncIterator[None]:
        """Have room for one more process until it lives or could not be brought to life."""
        claimed = False
        try:
            claimed = await self._claim(agent, patient=False)
            if not claimed:
                async with meanwhile():
                    claimed = await self._claim(agent, patient=True)
            yield
        except BaseException:
            if claimed:
                self._opening[agent] -= 1
                await self._tell_room()
            raise
        self._opening[agent] -= 1

    async def _claim(self, agent: str, *, patient: bool) -> bool:
        """Claim room for one process, who idles longest makes it; the impatient do not queue."""
        async with self._room:
            if self._waiting and not patient:
                return False
            self._waiting += patient
            try:
                while (longest := self._in_the_way(agent)) is None and not self._has_room(agent):
                    if not patient:
                        return False
                    await self._room.wait()
            finally:
                self._waiting -= patient
            gone = None if longest is None else self._live.pop(longest)
            self._opening[agent] += 1
        if longest is not None and gone is not None:
            try:
                await self._close(longest, gone)
            except BaseException:
                self._opening[agent] -= 1
                await self._tell_room()
                raise
        return True

    def _has_room(self, agent: str) -> bool:
        everybody = len(self._live) + self._opening.total()
        return everybody < self._max_processes and not self._is_full(agent)

    def _is_full(self, agent: str) -> bool:
        """Tell whether an agent has as many processes as it may have."""
        own = sum(live.name == agent for live in self._live.values()) + self._opening[agent]
        return own >= self._of_agent.get(agent, own + 1)

    def _in_the_way(self, agent: str) -> int | None:
        """Find who makes room where there is none: whoever idles longest, or of the same agent."""
        if self._has_room(agent):
            return None
        full = self._is_full(agent)
        idle = [
            (live.idle_since, key)
            for key, live in self._live.items()
            if not live.busy and (not full or live.name == agent)
        ]
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
