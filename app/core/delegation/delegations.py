"""Lets agents ask agents: checks who may ask whom, begins the work and reads what comes of it.

The rights of the one who asks do not travel: the person for whom it all began must be allowed to
use the agent that is asked, which then works under its own lists and policy. `deputies` tells which
agents may be asked at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol

from app.agents.agent import Agent
from app.agents.registry import Registry
from app.clock import Clock
from app.core.adapters import Adapter
from app.core.delegation import wording
from app.core.delegation.deputies import Deputies, find_presence
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.roster import Roster
from app.errors import Conflict, NotFound, SpeakerUnknown
from app.model.delegation import (
    Answer,
    Delegation,
    DelegationLimits,
    Kind,
    NewDelegation,
    WorkspaceKind,
)
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import TurnEngine
from app.model.types import OPEN_TURN_STATES, Activity, Session, SessionState, Speaker, Turn
from app.retry import persist
from app.signals import ALONE, Signals, Topic
from app.store.delegations import DelegationStore
from app.store.sessions import SessionStore
from app.store.turns import TurnStore
from app.tasks import Tasks

ANSWER_CHARACTERS = 60_000
"""The longest answer that an agent gets from another one: some twenty pages."""

Refusal = Callable[[Adapter, Speaker, PlaceKey], Awaitable[str | None]]
"""Says why a person may not use an agent in a place; None if they may."""


def cut(answer: str) -> str:
    """Return the beginning of a long answer."""
    if len(answer) <= ANSWER_CHARACTERS:
        return answer
    return f"{answer[:ANSWER_CHARACTERS]}\n{wording.CUT}"


class Engine(TurnEngine, Protocol):
    """Runs turns, and lets them wait for other agents."""

    async def wait(
        self,
        session: int,
        delegation: int,
        ended: Callable[[], Coroutine[Any, Any, None]],
        *,
        seconds: float,
    ) -> Literal["ended", "late", "over"]:
        """Let the running turn of a session wait for a delegation, without a slot.

        Returns what came first: its end, the bound, or the end of the turn that waits.
        """
        ...


class Delegations:
    """What agents ask of each other."""

    def __init__(
        self,
        store: DelegationStore,
        sessions: SessionStore,
        turns: TurnStore,
        *,
        roster: Roster,
        deputies: Deputies,
        adapters: Mapping[str, Adapter],
        refusal: Refusal,
        lend: Callable[[Session, str, str], Awaitable[str]],
        limits: Callable[[], DelegationLimits],
        redact: Callable[[str], str],
        engine: Engine,
        outbox: Outbox,
        feed: Feed,
        clock: Clock,
        signals: Signals = ALONE,
    ) -> None:
        """Let agents ask each other.

        `lend` names what a session works on, as places keep it, or refuses a branch or a folder
        that is not part of it.
        """
        self._store = store
        self._sessions = sessions
        self._turns = turns
        self._roster = roster
        self._deputies = deputies
        self._adapters = adapters
        self._refusal = refusal
        self._lend = lend
        self._limits = limits
        self._redact = redact
        self._engine = engine
        self._outbox = outbox
        self._feed = feed
        self._clock = clock
        self._tasks = Tasks("delegations")
        self._timer: asyncio.Task[None] | None = None
        self._signals = signals
        signals.on(Topic.LIMITS, lambda _facts: self._look_again())
        signals.on_sweep(self._look_again)

    def start(self) -> None:
        """Watch how long what an earlier run left may still take."""
        self._watch()

    async def close(self) -> None:
        """Stop watching."""
        await self._tasks.close()

    # Who may ask whom.

    @property
    def off(self) -> str:
        """Why no agent may ask another one here; empty if they may."""
        return "" if self._limits().depth else wording.OFF

    def colleagues(self, agent: str, turn: int) -> Sequence[Agent]:
        """List the agents that an agent sees and may ask in a turn."""
        cause, known = self._store.of_turn(turn), self._turns.turn(turn)
        depth = 0 if cause is None else cause.depth
        if known is None or depth >= self._limits().depth:
            return ()
        service = self._origin(known).service
        gone = self._roster.removed()
        return [
            each
            for each in self._roster.agents.values()
            if each.visible and each.id != agent and each.id not in gone
            if not self._deputies.object_to(each, service, agent=agent, by="agent")
        ]

    async def activities(self) -> Mapping[str, Activity]:
        """Tell which agents work or wait; the others are idle."""
        return await self._sessions.activities()

    def find(self, agent: str, turn: Turn, name: str, *, itself: bool = False) -> Agent:
        """Find an agent that another one may ask in a turn, by its name or what people call it.

        `itself` allows it to name itself, for a further session of its own.

        Raises:
            Conflict: it may not, there is none, or it cannot work.
        """
        called = self._roster.called().get(name.casefold())
        if called in self._roster.removed():
            raise Conflict(wording.REMOVED.format(name=name))
        found = None if called is None else self._roster.find(called)
        service = self._origin(turn).service
        if found is None:
            raise Conflict(wording.NO_AGENT.format(name=name))
        if objection := self._deputies.object_to(found, service, agent=agent, by="agent"):
            raise Conflict(
                wording.OBJECTIONS[objection].format(
                    name=name if objection == "unlisted" else found.name,
                    agent=found.title,
                    service=service,
                    asking=self._roster.name(agent),
                )
            )
        if found.id == agent and not itself:
            raise Conflict(wording.SELF)
        availability = self._roster.availability(found.id)
        if availability.state != "ready":
            raise Conflict(wording.CANNOT_WORK.format(agent=found.title, why=availability.words))
        return found

    def check_present(self, agent: Agent, service: str, host: Session) -> None:
        """Check that people of a service may have an agent work with the one they talk to.

        Raises:
            Conflict: it is not connected there, and the operator did not allow it by name.
        """
        talks = host.key.agent
        if self._deputies.object_to(agent, service, agent=talks, by="person"):
            raise Conflict(
                wording.NOT_PRESENT.format(
                    agent=agent.title,
                    service=service,
                    name=agent.name,
                    host=self._roster.name(talks),
                )
            )

    async def check(self, agent: Agent, people: Sequence[Speaker], root: Session) -> None:
        """Check that people may use an agent in the place where it all began.

        Raises:
            Conflict: one of them may not, or it is not known who they are.
        """
        if not people:
            raise Conflict(wording.NO_PERSON)
        own = find_presence(self._adapters, agent.id, root.place.service)
        adapter = own or self._adapters.get(root.key.adapter)
        for person in people:
            try:
                why = (
                    wording.UNCHECKED
                    if adapter is None
                    else await self._refusal(adapter, person, root.place)
                )
            except SpeakerUnknown:
                why = wording.UNCHECKED
            if why is not None:
                words = wording.NOT_ALLOWED.format(person=person.name, agent=agent.title, why=why)
                raise Conflict(words)

    # What they ask.

    async def ask(
        self,
        session: Session,
        turn: Turn,
        agent: Agent,
        task: str,
        *,
        kind: Kind = "message",
        going_on: int | None = None,
        name: str = "",
        workspace: WorkspaceKind = "",
        branch: str = "",
        folder: str = "",
    ) -> Delegation:
        """Have an agent do something for the running turn of another one.

        `going_on` is the session that goes on with it; None: a new one.

        Raises:
            Conflict: it may not, a limit is reached, or the branch or the folder is not there.
        """
        cause = self._store.of_turn(turn.id)
        root = session if cause is None else self._known(cause.root_session)
        people = [cause.person] if cause is not None else self._people(turn)
        await self.check(agent, people, root)
        caller = self._roster.find(session.key.agent)
        title = session.key.agent if caller is None else caller.title
        return await self.begin(
            NewDelegation(
                kind,
                agent.id,
                session.id,
                turn.id,
                self._redact(task),
                people[-1],
                going_on,
                speaker=Speaker(session.key.agent, title, "agent"),
                repository=await self._lend(session, branch, folder),
                name=name,
                workspace=workspace,
                branch=branch,
                folder=folder,
            )
        )

    async def begin(self, new: NewDelegation) -> Delegation:
        """Begin a delegation; the caller has checked who asks, and for whom.

        Raises:
            Conflict: a limit is reached, or agents may not ask agents here.
        """
        if self.off:
            raise Conflict(self.off)
        begun = await persist(self._clock, self._store.begin, new, self._limits())
        self._outbox.send(*begun.posts)
        self._feed.notify(new.caller_session)
        if begun.delegation is None:
            found = self._roster.find(new.agent)
            agent = new.agent if found is None else found.title
            raise Conflict(wording.LIMITS[begun.limit].format(agent=agent) + wording.TOLD)
        made = begun.delegation
        self._feed.notify(made.root_session)
        self._feed.notify(made.session)
        self._engine.submit(made.session)
        self._watch()
        return made

    def resolve(self, session: Session, agent: Agent, wanted: str) -> int | None:
        """Find the session of an agent that is to go on; None: a new one.

        Only sessions that the same place began are found.

        Raises:
            Conflict: there is none.
        """
        if wanted == "create":
            return None
        begun = [each for each in self._store.begun_in(session.place) if each.agent == agent.id]
        there = [each.session for each in begun if self._is_here(each.session)]
        if wanted in {"latest", "latest-or-create"}:
            if there or wanted == "latest-or-create":
                return there[-1] if there else None
            raise Conflict(wording.NO_LATEST.format(agent=agent.title))
        found = next((each for each in there if str(each) == wanted), None)
        if found is None:
            raise Conflict(wording.NO_SESSION.format(name=wanted, agent=agent.title))
        return found

    async def wait(self, asked: Delegation, *, seconds: float) -> Delegation:
        """Let the turn that asked wait for a delegation, at most this long.

        Raises:
            Conflict: the turn that asked is over.
        """
        waiting = partial(self._ended, asked)
        came = await self._engine.wait(asked.caller_session, asked.id, waiting, seconds=seconds)
        if came == "over":
            raise Conflict(wording.OVER)
        return self.read(asked.id)

    async def _ended(self, asked: Delegation) -> None:
        with self._feed.watching(asked.session) as changed:
            while self.read(asked.id).state in OPEN_TURN_STATES:
                await changed.wait()
                changed.clear()

    async def stop(self, delegations: Sequence[int]) -> None:
        """Stop delegations, and all that they led to."""
        if delegations:
            self._outbox.send(*await persist(self._clock, self._store.stop, delegations))
            for each in delegations:
                session = self.read(each).session
                await self._engine.cancel(session)
                self._feed.notify(session)

    def _watch(self) -> None:
        """Watch how long agents go on; called whenever there may be more to watch."""
        if not self._signals.is_leader:
            self._signals.send(Topic.LIMITS)
        elif self._timer is None or self._timer.done():
            self._timer = self._tasks.start(self._end_in_time(), name="time limit")

    def _look_again(self) -> None:
        if self._signals.is_leader:
            self._watch()

    async def _end_in_time(self) -> None:
        while (due := self._store.due(self._limits().seconds)) is not None:
            if (left := due - self._clock.now()) > 0:
                await self._clock.sleep(left)
                continue
            posts = await persist(self._clock, self._store.stop_due, self._limits().seconds)
            self._outbox.send(*posts)
            await self._engine.cancel(0)

    # What came of it.

    def read(self, delegation: int) -> Delegation:
        """Read a delegation as it is now.

        Raises:
            NotFound: there is none.
        """
        found = self._store.delegation(delegation)
        if found is None:
            raise NotFound("response", delegation)
        return found

    def begun_in(self, place: PlaceKey) -> Sequence[Delegation]:
        """List what the agents of a place asked for, oldest first."""
        return self._store.begun_in(place)

    async def take_answer(self, delegation: Delegation) -> Answer:
        """Read what came of a delegation for the agent that asked, which then knows it."""
        answer = self._store.answer(delegation)
        await persist(self._clock, self._store.told, [delegation.id])
        # Redacted again: text that a tool call had cut in two is joined here for the first time.
        return replace(answer, text=cut(self._redact(answer.text)))

    def _is_here(self, session_id: int) -> bool:
        session = self._sessions.session(session_id)
        return session is not None and session.state is not SessionState.REMOVED

    def _known(self, session_id: int) -> Session:
        session = self._sessions.session(session_id)
        if session is None:
            raise NotFound("session", session_id)
        return session

    def _origin(self, turn: Turn) -> SessionKey:
        """Return where people asked for what a turn does: sessions may have several surfaces."""
        cause = self._store.of_turn(turn.id)
        if cause is None:
            return turn.surface
        first = None if cause.root_turn is None else self._turns.turn(cause.root_turn)
        return self._known(cause.root_session).key if first is None else first.surface

    def _people(self, turn: Turn) -> list[Speaker]:
        """List the people whose messages a turn answers."""
        messages = self._turns.messages(turn.id)
        return list(dict.fromkeys(each.speaker for each in messages))


def read_limits(registry: Registry) -> DelegationLimits:
    """Read how far agents may go among themselves, as it is set now."""
    settings = registry.configuration.settings
    return DelegationLimits(
        depth=settings.delegation_depth,
        per_turn=settings.delegations_per_turn,
        per_tree=settings.delegations_per_tree,
        per_hour=settings.delegations_per_hour,
        seconds=60.0 * settings.delegation_minutes,
        usd=settings.delegation_usd,
    )
