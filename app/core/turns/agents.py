"""Keeps agent processes alive between turns, up to a limit, and parks idle ones.

A parked session is one row in the store and no process; its next turn starts one again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, Protocol

from app.core.base import Base
from app.core.repo_provider import RepoProvider
from app.core.turns.between import BetweenTurns
from app.core.turns.prompt import SystemPrompt, write_system_prompt
from app.model.agents import Choices
from app.model.background import Woken, Work
from app.model.ports import AgentLauncher, AgentSession, OpenedSession
from app.model.subagents import SubagentState
from app.model.types import Session
from app.model.workspaces import Target, Workspace
from app.retry import persist
from app.signals import Facts, Topic
from app.tasks import Tasks

logger = logging.getLogger(__name__)

STARTS = 30
STARTS_SECONDS = 60.0
"""A session's process is started at most this often: people do not come back so often, and a
program that ends at once would otherwise be restarted forever."""

Meanwhile = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class LiveAgent:
    """One session's live process."""

    agent: AgentSession
    name: str
    generation: int
    how: Literal["live", "new", "resumed", "loaded", "lost"]
    idle_seconds: float
    """Seconds of idling after which it is parked."""
    stale: bool = field(default=False, init=False)
    """Whether its agent's entry was changed: it ends with its turn."""
    workspace: Workspace
    wishes: tuple[str | None, str | None] = (None, None)
    """The mode and the model it was given."""
    busy: bool = True
    idle_since: float = 0.0
    system: str = ""
    """The system prompt it was started with, until a turn has recorded it."""
    told: Mapping[str, str] | None = None
    """The digests of what its conversation was told of itself; None if nothing."""
    known: frozenset[int] = frozenset()
    """The messages that its replayed conversation shows."""
    parking: asyncio.Task[None] | None = None
    """Parks it once it has idled long enough."""

    @property
    def is_idle(self) -> bool:
        """Whether it may be ended: no turn runs in it, and no work goes on without one."""
        return not (self.busy or self.agent.work or self.agent.subagents)

    def stay(self) -> None:
        """Cancel its parking."""
        if self.parking is not None:
            self.parking.cancel()
            self.parking = None


class Processes(Protocol):
    """The agent processes of sessions, wherever they run."""

    def choices(self, session: Session) -> Choices:
        """Return what a session's agent offers, or what the agent offered when it last started."""
        ...

    async def configure(
        self, session_id: int, *, mode: str | None = None, model: str | None = None
    ) -> None:
        """Set the mode or model of a running agent; others get them when they start.

        Raises:
            AgentError: it does not offer that.
        """
        ...

    async def stop_subagent(self, session_id: int, key: str) -> bool:
        """Stop one sub-agent of a session; False if it cannot be stopped alone, or is over.

        Raises:
            AgentError: its agent is gone.
        """
        ...

    async def end(self, session_id: int) -> None:
        """End a session's process, if it has one."""
        ...


class LiveAgents:
    """The agent processes that run now."""

    def __init__(
        self,
        base: Base,
        launcher: AgentLauncher,
        workspaces: RepoProvider,
        *,
        max_processes: int,
    ) -> None:
        """Keep at most `max_processes` alive, fewer of agents that have a limit of their own."""
        self._launcher = launcher
        self._workspaces = workspaces
        self._base = base
        self._sessions = base.stores.sessions
        self._max_processes = max_processes
        self._live: dict[int, LiveAgent] = {}
        self._choices: dict[str, Choices] = {}
        self._ending: dict[int, asyncio.Event] = {}
        self._opening: Counter[str] = Counter()
        self._starts: dict[int, deque[float]] = {}
        self._waiting = 0
        self._room = asyncio.Condition()
        self._tasks = Tasks("agents")
        self.on_work: Callable[[int, tuple[Work, ...] | None], None] = lambda _session, _work: None
        """Is told what goes on between the turns of a session; None: its process has ended."""
        self.on_woken: Callable[[int, Woken], None] = lambda _session, _woken: None
        """Is told when an agent began something by itself."""
        self.on_change: Callable[[int], None] = lambda _session: None
        """Is told of a session whose sub-agents changed while no turn ran."""
        base.signals.on(Topic.CHOICES, self._hear)

    async def take(
        self,
        session: Session,
        target: Target,
        system_prompt: SystemPrompt,
        *,
        replay: bool = False,
        meanwhile: Meanwhile = nullcontext,
    ) -> LiveAgent:
        """Take a session's agent for one turn; start its process if it has none.

        With `replay`, it is started again in any case, to repeat its conversation if it can.

        While there is no room for its process, `meanwhile` is entered: a turn that waits for room
        must not hold what the turns that could make room are waiting for.

        Raises:
            AgentError: it could not be started.
        """
        live = self._live.get(session.id)
        usable = live is not None and live.agent.alive and not live.stale
        usable = usable and not replay and not self._workspaces.is_to_open(session, target)
        if live is not None and usable and live.generation == session.generation:
            live.stay()
            live.busy = True
            live.how = "live"
            await self._adjust(session.id, live)
            return live
        await self.end(session.id)
        await self._pace(session.id, meanwhile)
        async with self._room_for_one(session.key.agent, meanwhile):
            workspace = await self._workspaces.open(session, target)
            system = write_system_prompt(system_prompt)
            opened = await self._start(session, workspace, system, replay=replay)
            agent = self._base.agents.get(session.key.agent)
            idle_seconds = agent.idle_seconds if agent else 0.0
            live = LiveAgent(
                opened.session,
                session.key.agent,
                session.generation,
                opened.how,
                idle_seconds,
                replace(workspace, elsewhere=opened.elsewhere),
            )
            live.wishes = (session.mode, session.model)
            live.known = opened.marks or frozenset()
            if opened.instructed:
                live.system, live.told = system, system_prompt.digests()
            else:
                live.told = _recall(session, opened.session.acp_session_id)
            self._live[session.id] = live
            offered = self._choices[session.key.agent] = opened.session.choices
            self._base.signals.send(Topic.CHOICES, agent=live.name, choices=asdict(offered))
        await self._adjust(session.id, live)
        return live

    async def _start(
        self, session: Session, workspace: Workspace, system: str, *, replay: bool
    ) -> OpenedSession:
        """Start an agent in its workspace; without an agent the workspace is closed again."""
        between = BetweenTurns(
            self._base,
            session,
            self._tasks,
            wake=self._wake,
            on_change=self.on_change,
            on_work=self._note_work,
        )
        try:
            return await self._launcher.open(
                session, workspace, between, system=system, replay=replay
            )
        except BaseException:
            await asyncio.shield(self._workspaces.close(session.id))
            raise

    async def borrow(self, session_id: int) -> LiveAgent | None:
        """Take a session's agent for a turn that it began; None if its process is gone."""
        live = self._live.get(session_id)
        if live is None or not live.agent.alive:
            return None
        live.stay()
        live.busy = True
        live.how = "live"
        return live

    async def silence(self, session_id: int) -> None:
        """Ask an agent to end what it does by itself, until it is prompted again."""
        if (live := self._live.get(session_id)) is not None:
            await live.agent.silence()

    def _wake(self, session_id: int, woken: Woken) -> None:
        # One that is busy is asked again when it is given back.
        if (live := self._live.get(session_id)) is not None and not live.busy:
            self.on_woken(session_id, woken)

    async def give_back(self, session_id: int) -> None:
        """Give an agent back after its turn: it idles from now on."""
        live = self._live.get(session_id)
        if live is None:
            return
        if live.stale or not live.agent.alive:
            await self.end(session_id)
            return
        live.busy = False
        await self._let_idle(session_id, live)
        if (woken := live.agent.woken) is not None:
            self.on_woken(session_id, woken)

    async def _let_idle(self, session_id: int, live: LiveAgent) -> None:
        """Let a process idle until it is parked, unless work goes on in it."""
        live.stay()
        if not live.is_idle:
            return
        live.idle_since = self._base.clock.monotonic()
        live.parking = self._tasks.start(
            self._park(session_id, live), name=f"parking of session {session_id}"
        )
        await self._notify_room()

    def work(self, session_id: int) -> tuple[Work, ...]:
        """List what goes on between the turns of a session."""
        live = self._live.get(session_id)
        return live.agent.work if live is not None and live.agent.alive else ()

    def _note_work(self, session_id: int, work: tuple[Work, ...]) -> None:
        """Take note of what goes on; a process without work idles from then on."""
        live = self._live.get(session_id)
        if live is None:
            return
        if live.agent.alive:
            self.on_work(session_id, work)
        if not work and not live.busy:
            idling = self._let_idle(session_id, live) if live.agent.alive else self.end(session_id)
            self._tasks.start(idling, name=f"idling of session {session_id}")

    async def end(self, session_id: int, *, stopped: bool = False) -> None:
        """End a session's process, maybe as people stopped it; another caller waits for the end."""
        live = self._live.pop(session_id, None)
        if live is not None:
            await self._close(session_id, live, stopped=stopped)
            await self._notify_room()
        elif (ending := self._ending.get(session_id)) is not None:
            await ending.wait()

    async def renew(self, agent: str) -> None:
        """Let every process of an agent end: idle ones now, busy ones with their turn."""
        self._choices.pop(agent, None)
        own = [(key, live) for key, live in self._live.items() if live.name == agent]
        for session_id, live in own:
            live.stale = True
            if live.is_idle:
                await self.end(session_id)

    async def close(self) -> None:
        """End every process."""
        await self._tasks.close()
        ends = [self.end(session_id) for session_id in list(self._live)]
        for failure in await asyncio.gather(*ends, return_exceptions=True):
            if failure is not None:
                logger.error("could not end an agent", exc_info=failure)

    async def configure(
        self, session_id: int, *, mode: str | None = None, model: str | None = None
    ) -> None:
        """Set the mode or model of a running agent; others get them when they start.

        Raises:
            AgentError: it does not offer that.
        """
        live = self._live.get(session_id)
        if live is not None and live.agent.alive:
            await live.agent.configure(mode=mode, model=model)

    async def stop_subagent(self, session_id: int, key: str) -> bool:
        """Stop one sub-agent of a session; False if it cannot be stopped alone, or is over.

        Raises:
            AgentError: its agent is gone.
        """
        live = self._live.get(session_id)
        return live is not None and await live.agent.stop_subagent(key)

    def processes(self) -> Mapping[str, int]:
        """Count the processes of each agent that has one."""
        return Counter(live.name for live in self._live.values())

    def choices(self, session: Session) -> Choices:
        """Return what a session's agent offers, or what the agent offered when it last started."""
        live = self._live.get(session.id)
        if live is not None:
            self._choices[session.key.agent] = live.agent.choices
        return self._choices.get(session.key.agent, Choices())

    def _hear(self, facts: Facts) -> None:
        """Take what an agent offers that another member started."""
        self._choices[facts["agent"]] = Choices.of(facts["choices"])

    async def _adjust(self, session_id: int, live: LiveAgent) -> None:
        """Apply the mode and model that were chosen while the agent was starting or busy."""
        session = self._sessions.session(session_id)
        if session is None or (session.mode, session.model) == live.wishes:
            return
        await live.agent.configure(mode=session.mode, model=session.model)
        live.wishes = (session.mode, session.model)

    async def _notify_room(self) -> None:
        async with self._room:
            self._room.notify_all()

    async def _pace(self, session_id: int, meanwhile: Meanwhile) -> None:
        """Delay the start of a process that was started too often: it may die at once each time."""
        now = self._base.clock.monotonic()
        starts = self._starts.setdefault(session_id, deque(maxlen=STARTS))
        if len(starts) == STARTS and (left := starts[0] + STARTS_SECONDS - now) > 0:
            logger.warning("session %d: started %d times in a minute, waiting", session_id, STARTS)
            async with meanwhile():
                await self._base.clock.sleep(left)
        starts.append(self._base.clock.monotonic())
        old = [key for key, times in self._starts.items() if now - times[-1] > STARTS_SECONDS]
        for key in old:
            del self._starts[key]

    @asynccontextmanager
    async def _room_for_one(self, agent: str, meanwhile: Meanwhile) -> AsyncIterator[None]:
        """Reserve room for one more process until it runs or could not be started."""
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
                await self._notify_room()
            raise
        self._opening[agent] -= 1

    async def _claim(self, agent: str, *, patient: bool) -> bool:
        """Claim room for one process; the one that idles longest is ended for it.

        Without `patient`, do not queue.
        """
        async with self._room:
            if self._waiting and not patient:
                return False
            self._waiting += patient
            try:
                while (longest := self._find_evictable(agent)) is None and not self._has_room(
                    agent
                ):
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
                await self._notify_room()
                raise
        return True

    def _has_room(self, agent: str) -> bool:
        total = len(self._live) + self._opening.total()
        return total < self._max_processes and not self._is_full(agent)

    def _is_full(self, agent: str) -> bool:
        """Tell whether an agent has as many processes as it may have."""
        own = sum(live.name == agent for live in self._live.values()) + self._opening[agent]
        found = self._base.agents.get(agent)
        limit = found.max_processes if found else None
        return limit is not None and own >= limit

    def _find_evictable(self, agent: str) -> int | None:
        """Find the process to end if there is no room: the longest idle one.

        If the agent has reached its own limit, it is one of that agent's.
        """
        if self._has_room(agent):
            return None
        full = self._is_full(agent)
        idle = [
            (live.idle_since, key)
            for key, live in self._live.items()
            if live.is_idle and (not full or live.name == agent)
        ]
        return min(idle)[1] if idle else None

    async def _close(self, session_id: int, live: LiveAgent, *, stopped: bool = False) -> None:
        live.stay()
        ended = self._ending[session_id] = asyncio.Event()
        try:
            left = live.agent.subagents
            await live.agent.close()
            self.on_work(session_id, None)
            if left:
                settle = self._base.stores.subagents.settle
                state: SubagentState = "stopped" if stopped else "lost"
                await persist(self._base.clock, settle, session_id, state)
                self.on_change(session_id)
            await self._workspaces.close(session_id)
        finally:
            del self._ending[session_id]
            ended.set()

    async def _park(self, session_id: int, live: LiveAgent) -> None:
        await self._base.clock.sleep(live.idle_seconds)
        live.parking = None
        logger.info("session %d is parked", session_id)
        await self.end(session_id)


def _recall(session: Session, acp_session_id: str) -> Mapping[str, str] | None:
    """Return what a conversation was told of its agent, if it is the one that was told last."""
    told = session.told
    return told.parts if told is not None and told.acp_session_id == acp_session_id else None
