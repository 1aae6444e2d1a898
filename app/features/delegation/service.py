"""Lets agents ask agents: begins the work, shows it, and reads what comes of it.

Who may ask whom is up to `rights`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from typing_extensions import override

from app.agents.agent import Agent
from app.core.hooks import PromptParts
from app.core.runtime import Runtime
from app.errors import Conflict, NotFound
from app.features.delegation import wording
from app.features.delegation.rights import Rights
from app.features.delegation.showing import Showing
from app.features.delegation.store import DelegationStore
from app.features.part import Part
from app.model.delegation import (
    SERVICE,
    Answer,
    Delegation,
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
        self.rights = Rights(runtime, self.store)
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
        found = self.rights.colleagues(surface.agent, turn)
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

    async def activities(self) -> Mapping[str, Activity]:
        """Tell which agents work or wait; the others are idle."""
        return await self._sessions.activities()

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
        await self.rights.check(agent, people, root)
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
        if self.rights.off:
            raise Conflict(self.rights.off)
        begun = await persist(self._clock, self.store.begin, new, self.rights.limits)
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
        while (due := self.store.due(self.rights.limits.seconds)) is not None:
            if (left := due - self._clock.now()) > 0:
                await self._clock.sleep(left)
                continue
            posts = await persist(self._clock, self.store.stop_due, self.rights.limits.seconds)
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

    def _people(self, turn: Turn) -> list[Speaker]:
        """List the people whose messages a turn answers."""
        messages = self._turns.messages(turn.id)
        return list(dict.fromkeys(each.speaker for each in messages))


def cut(answer: str) -> str:
    """Return the beginning of a long answer."""
    if len(answer) <= ANSWER_CHARACTERS:
        return answer
    return f"{answer[:ANSWER_CHARACTERS]}\n{wording.CUT}"
