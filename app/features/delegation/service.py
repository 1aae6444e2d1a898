"""Lets agents ask agents: checks who may ask whom, begins the work and reads what comes of it.

The rights of the one who asks do not travel: the person for whom it all began must be allowed to
use the agent that is asked, which then works under its own lists and policy. People reach agents
that are connected to their service, and an agent reaches through another one nothing that it cannot
reach itself. Only the operator allows more, by a name in `agents_allow`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from typing_extensions import override

from app.agents.agent import Agent, find_excess
from app.core.adapters import find_presence
from app.core.hooks import PromptParts
from app.core.intake.floor import Access
from app.core.runtime import Runtime
from app.errors import Conflict, NotFound, SpeakerUnknown
from app.features.delegation import wording
from app.features.delegation.showing import Showing
from app.features.delegation.store import DelegationStore
from app.features.delegation.wording import Objection
from app.features.part import Part
from app.model.agents import Scope
from app.model.delegation import (
    SERVICE,
    Answer,
    Delegation,
    DelegationLimits,
    Kind,
    NewDelegation,
    WorkspaceKind,
)
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import DelegatedLine
from app.model.types import (
    OPEN_TURN_STATES,
    Activity,
    Message,
    Session,
    SessionState,
    Speaker,
    Turn,
    TurnState,
)
from app.retry import persist
from app.signals import Topic
from app.tasks import Tasks

ANSWER_CHARACTERS = 60_000
"""The longest answer that an agent gets from another one: some twenty pages."""


class Delegations(Part):
    """What agents ask of each other."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.store = runtime.stores.open(DelegationStore)
        self.showing = Showing(runtime, self.store)
        self._sessions = runtime.stores.sessions
        self._turns = runtime.stores.turns
        self._roster = runtime.roster
        self._redact = runtime.vault.redact
        self._clock = runtime.clock
        self._awaited: defaultdict[int, set[int]] = defaultdict(set)
        """What running turns wait for, by turn."""
        self._tasks = Tasks("delegations")
        self._timer: asyncio.Task[None] | None = None
        self._signals = runtime.signals
        self._signals.on(Topic.LIMITS, lambda _facts: self._look_again())
        self._signals.on_sweep(self._look_again)

    @override
    def start(self) -> None:
        """Watch how long what an earlier run left may still take, and tell what it did not."""
        self.showing.tell()
        self._watch()

    @override
    async def close(self) -> None:
        await self._tasks.close()

    @override
    async def finish(self) -> None:
        await self.showing.close()

    # What the pipe asks.

    @override
    async def system_parts(self, surface: SessionKey, turn: int) -> Mapping[str, str]:
        """Tell an agent whom it can ask, and with which tool."""
        agent = self.runtime.agents.get(surface.agent)
        tools = [each.name for each in self.runtime.toolbox.tools(surface.agent)]
        as_command = agent is not None and agent.tool_exposure == "skills"
        found = self.colleagues(surface.agent, turn)
        return {"colleagues": wording.list_colleagues(found, tools, as_command=as_command)}

    @override
    async def prompt_parts(
        self, session: Session, turn: Turn, messages: Sequence[Message], *, begins: bool
    ) -> PromptParts:
        """Tell an agent for whom it works, and the answers that it does not know yet.

        A turn that was cut off is told of all its calls, so that it repeats none.
        """
        notes: list[str] = []
        data: list[tuple[str, str]] = []
        told: list[int] = []
        if (cause := self.store.of_turn(turn.id)) is not None:
            caller = self._sessions.session(cause.caller_session)
            if cause.caller_turn is not None and caller is not None:
                agent = self.runtime.agents.title(caller.key.agent)
                notes.append(wording.FOR.format(agent=agent, person=cause.person.name))
        for each in self.store.untold(session.id, turn.id):
            agent = self.runtime.agents.title(each.agent)
            what = {"agent": agent, "id": each.id, "task": wording.brief(each)}
            if each.state in OPEN_TURN_STATES:
                notes.append(wording.STILL_WORKS.format(**what))
                continue
            answer = self.store.answer(each)
            told.append(each.id)
            notes.append(wording.ENDS[each.state].format(**what))
            text = self._redact("\n".join(filter(None, (answer.text, answer.problem))))
            if text:
                data.append((wording.ANSWER_OF.format(**what), cut(text)))
        on_sent = partial(persist, self._clock, self.store.told, told) if told else None
        return PromptParts(notes=tuple(notes), data=tuple(data), on_sent=on_sent)

    @override
    def post_lines(self, turn: int) -> Sequence[DelegatedLine]:
        return self.showing.lines(turn)

    @override
    async def voice_of(self, session: Session) -> str:
        return await self.showing.voice_of(session)

    @override
    async def on_end(self, session: Session, turn: Turn, state: TurnState) -> None:
        """Tell what no post shows, and stop what a turn that failed waited for."""
        if session.place.service == SERVICE or self.post_lines(turn.id):
            self.showing.tell()
        awaited = self._awaited.pop(turn.id, ())
        if state is TurnState.FAILED:
            await self.cancel(tuple(awaited))

    # Who may ask whom.

    @property
    def off(self) -> str:
        """Why no agent may ask another one here; empty if they may."""
        return "" if self._limits.depth else wording.OFF

    @property
    def _limits(self) -> DelegationLimits:
        """How far agents may go among themselves, as it is set now."""
        settings = self.runtime.configuration.settings
        return DelegationLimits(
            depth=settings.delegation_depth,
            per_turn=settings.delegations_per_turn,
            per_tree=settings.delegations_per_tree,
            per_hour=settings.delegations_per_hour,
            seconds=60.0 * settings.delegation_minutes,
            usd=settings.delegation_usd,
        )

    def colleagues(self, agent: str, turn: int) -> Sequence[Agent]:
        """List the agents that an agent sees and may ask in a turn."""
        cause, known = self.store.of_turn(turn), self._turns.turn(turn)
        depth = 0 if cause is None else cause.depth
        if known is None or depth >= self._limits.depth:
            return ()
        service = self._origin(known).service
        gone = self._roster.removed()
        return [
            each
            for each in self._roster.agents.values()
            if each.visible and each.id != agent and each.id not in gone
            if not self._object_to(each, service, agent=agent, by="agent")
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
        if objection := self._object_to(found, service, agent=agent, by="agent"):
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
        if self._object_to(agent, service, agent=talks, by="person"):
            raise Conflict(
                wording.NOT_PRESENT.format(
                    agent=agent.title,
                    service=service,
                    name=agent.name,
                    host=self._roster.name(talks),
                )
            )

    def _object_to(
        self, asked: Agent, service: str, *, agent: str, by: Literal["agent", "person"]
    ) -> Objection:
        """Say why an agent may not be asked for people of a service; empty if it may.

        `agent` is the one that asks or, if a person does, the one they talk to: its lists count.
        """
        agents = self.runtime.agents
        asking = agents.get(agent)
        scope = Scope(agents_allow=()) if asking is None else asking.scope
        if by == "agent" and not scope.allows_agent(asked.name):
            return "unlisted"
        if scope.names_agent(asked.name) or (by == "agent" and asked.id == agent):
            return ""
        if find_presence(self.runtime.adapters, asked.id, service) is None:
            return "absent"
        if by == "person" or asking is None:
            return ""
        return find_excess(asking.bounds, agents[asked.id].bounds)

    async def check(self, agent: Agent, people: Sequence[Speaker], root: Session) -> None:
        """Check that people may use an agent in the place where it all began.

        Raises:
            Conflict: one of them may not, or it is not known who they are.
        """
        if not people:
            raise Conflict(wording.NO_PERSON)
        own = find_presence(self.runtime.adapters, agent.id, root.place.service)
        adapter = own or self.runtime.adapters.get(root.key.adapter)
        access = Access.of(self.runtime.configuration.settings)
        for person in people:
            try:
                why = (
                    wording.UNCHECKED
                    if adapter is None
                    else await access.refusal(adapter, person, root.place)
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
        cause = self.store.of_turn(turn.id)
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
                repository=await self.runtime.workspaces.lend(session, branch, folder),
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
        begun = await persist(self._clock, self.store.begin, new, self._limits)
        self.runtime.outbox.send(*begun.posts)
        self.runtime.feed.notify(new.caller_session)
        if begun.delegation is None:
            found = self._roster.find(new.agent)
            agent = new.agent if found is None else found.title
            raise Conflict(wording.LIMITS[begun.limit].format(agent=agent) + wording.TOLD)
        made = begun.delegation
        self.runtime.feed.notify(made.root_session)
        self.runtime.feed.notify(made.session)
        self.runtime.engine.submit(made.session)
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
        begun = [each for each in self.store.begun_in(session.place) if each.agent == agent.id]
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
        awaited = self._awaited[asked.caller_turn or 0]
        awaited.add(asked.id)
        waiting = partial(self._ended, asked)
        came = await self.runtime.engine.wait(asked.caller_session, waiting, seconds=seconds)
        if came == "over":
            raise Conflict(wording.OVER)
        awaited.discard(asked.id)
        return self.read(asked.id)

    async def _ended(self, asked: Delegation) -> None:
        with self.runtime.feed.watching(asked.session) as changed:
            while self.read(asked.id).state in OPEN_TURN_STATES:
                await changed.wait()
                changed.clear()

    async def cancel(self, delegations: Sequence[int]) -> None:
        """Stop delegations, and all that they led to."""
        if delegations:
            self.runtime.outbox.send(*await persist(self._clock, self.store.stop, delegations))
            for each in delegations:
                session = self.read(each).session
                await self.runtime.engine.cancel(session)
                self.runtime.feed.notify(session)

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
        while (due := self.store.due(self._limits.seconds)) is not None:
            if (left := due - self._clock.now()) > 0:
                await self._clock.sleep(left)
                continue
            posts = await persist(self._clock, self.store.stop_due, self._limits.seconds)
            self.runtime.outbox.send(*posts)
            await self.runtime.engine.cancel(0)

    # What came of it.

    def read(self, delegation: int) -> Delegation:
        """Read a delegation as it is now.

        Raises:
            NotFound: there is none.
        """
        found = self.store.delegation(delegation)
        if found is None:
            raise NotFound("response", delegation)
        return found

    def begun_in(self, place: PlaceKey) -> Sequence[Delegation]:
        """List what the agents of a place asked for, oldest first."""
        return self.store.begun_in(place)

    async def take_answer(self, delegation: Delegation) -> Answer:
        """Read what came of a delegation for the agent that asked, which then knows it."""
        answer = self.store.answer(delegation)
        await persist(self._clock, self.store.told, [delegation.id])
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
        cause = self.store.of_turn(turn.id)
        if cause is None:
            return turn.surface
        first = None if cause.root_turn is None else self._turns.turn(cause.root_turn)
        return self._known(cause.root_session).key if first is None else first.surface

    def _people(self, turn: Turn) -> list[Speaker]:
        """List the people whose messages a turn answers."""
        messages = self._turns.messages(turn.id)
        return list(dict.fromkeys(each.speaker for each in messages))


def cut(answer: str) -> str:
    """Return the beginning of a long answer."""
    if len(answer) <= ANSWER_CHARACTERS:
        return answer
    return f"{answer[:ANSWER_CHARACTERS]}\n{wording.CUT}"
