"""Runs groups of delegations: what each of them needs, and the panels and races.

What is due next is read from the rows. A race pushes and proposes nothing before people have
picked; what they did not pick stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from app.agents.agent import Agent
from app.clock import Clock
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.runtime import Runtime
from app.errors import Conflict, RepositoryError
from app.features.delegation.service import Delegations
from app.features.together import wording
from app.features.together.model import Wish
from app.features.together.store import GroupStore
from app.model.asks import CHOICE, LEAVE
from app.model.delegation import Delegation, NewDelegation, WorkspaceKind
from app.model.inbound import Heard
from app.model.proposals import Work
from app.model.types import OPEN_TURN_STATES, Session, Speaker, TurnRef, TurnState
from app.model.updates import AskOption, AskRequest
from app.retry import persist

SUMS_UP: Final = 2
"""The round of a panel in which the host sums up; in the first one all answer."""


class Announcer:
    """Tells people about groups and reviews, each thing once."""

    def __init__(
        self,
        store: GroupStore,
        outbox: Outbox,
        feed: Feed,
        clock: Clock,
        redact: Callable[[str], str],
    ) -> None:
        self.store = store
        self.redact = redact
        self._outbox = outbox
        self._feed = feed
        self._clock = clock

    async def tell(self, session: int, mark: str, words: str, agent: str = "") -> None:
        """Say something once where a session began; `agent` says it if not that of the place."""
        clean = self.redact(words)
        posts = await persist(self._clock, self.store.tell, session, mark, clean, agent)
        self._outbox.send(*posts)
        self._feed.notify(session)

    async def end(self, session: int, group: str, words: str = "") -> None:
        """End a group, with the last words about it."""
        posts = await persist(self._clock, self.store.end, session, group, self.redact(words))
        self._outbox.send(*posts)
        self._feed.notify(session)

    async def ask(self, group: str, ref: TurnRef, request: AskRequest, *, seconds: float) -> None:
        """Ask people once about a group, where it began."""
        deadline = self._clock.now() + seconds

        async def ask() -> tuple[int, ...]:
            return await self.store.ask(group, ref, request, deadline=deadline)

        self._outbox.send(*await persist(self._clock, ask))
        self._feed.notify(ref.session)


class Grouping(Announcer):
    """Begins, reads and ends groups of delegations."""

    def __init__(self, runtime: Runtime, store: GroupStore) -> None:
        super().__init__(store, runtime.outbox, runtime.feed, runtime.clock, runtime.vault.redact)
        self.delegations = runtime.part(Delegations)
        self.rows = self.delegations.store
        self.sessions = runtime.stores.sessions
        self.turns = runtime.stores.turns
        self._decisions = runtime.stores.decisions
        self._workspaces = runtime.workspaces
        self._agents = runtime.agents

    def name_of(self, agent: str) -> str:
        """Return what people call an agent."""
        return self._agents.title(agent)

    def speaker(self, agent: str) -> Speaker:
        """Return an agent as the one who says something."""
        return Speaker(agent, self.name_of(agent), "agent")

    async def target_of(self, session: Session) -> str:
        """Name what a session works on, as places keep it."""
        return await self._workspaces.lend(session, "", "")

    async def admit(self, agent: str, person: Speaker, root: Session, service: str = "") -> Agent:
        """Check that an agent can work, and for this person.

        `service` is the one on which a person gave the command; empty if an agent asks.

        Raises:
            Conflict: it cannot, or the person may not use it.
        """
        found = self._agents.get(agent)
        if found is None:
            raise Conflict(wording.NOT_HERE.format(agent=self.name_of(agent)))
        if service:
            self.delegations.rights.check_present(found, service, root)
        await self.delegations.rights.check(found, [person], root)
        return found

    async def enter(self, heard: Heard, agent: str) -> Session:
        """Return the session of an agent in the place of a message; it is begun if needed."""
        number = await persist(self._clock, self.store.enter, heard, agent)
        session = self.sessions.session(number)
        assert session is not None, "it was entered just now"
        return session

    async def ask_several(
        self,
        group: str,
        host: Session,
        wish: Wish,
        heard: Heard,
        *,
        workspace: WorkspaceKind,
        words: str,
    ) -> str:
        """Ask several agents the same, each once; returns what to say, and why some were not asked.

        Raises:
            Conflict: none could be asked.
        """
        new = NewDelegation(
            wish.act,
            "",
            host.id,
            None,
            wish.words,
            heard.speaker,
            repository=await self.target_of(host),
            workspace=workspace,
            group=group,
        )
        known = {row.agent for row in self.rows.in_group(group)}
        asked, refused = [], []
        for agent in wish.agents:
            try:
                found = await self.admit(agent, heard.speaker, host, heard.place.service)
                if agent not in known:
                    await self.delegations.begin(replace(new, agent=agent))
            except Conflict as error:
                refused.append(str(error))
            else:
                asked.append(found.title)
        if not asked:
            raise Conflict("\n".join(refused))
        return "\n".join((words.format(agents=wording.listed(asked)), *refused))

    def is_asked(self, group: str, first: Delegation) -> bool:
        """Tell whether the command that began a group has asked everyone: then it is decided."""
        root = self.sessions.session(first.root_session)
        if root is None:
            return True
        message = group.removeprefix(f"{first.kind}:{root.place}:")
        return self._decisions.decided(root.place, message)

    def person_of(self, turn: int) -> Speaker:
        """Return the person for whom a turn works.

        Raises:
            Conflict: it is not known.
        """
        cause = self.rows.of_turn(turn)
        if cause is not None:
            return cause.person
        said = self.turns.messages(turn)
        people = [each.speaker for each in said if each.speaker.kind == "person"]
        if not people:
            raise Conflict(wording.NO_PERSON)
        return people[-1]

    def find_end(self, row: Delegation) -> TurnState | None:
        """Tell how a delegation ended; None while it goes on."""
        return None if row.state in OPEN_TURN_STATES else row.state


class Panel:
    """The panels of all places: several agents answer one question, and one of them sums up."""

    def __init__(self, grouping: Grouping) -> None:
        self._grouping = grouping

    async def begin(self, group: str, host: Session, wish: Wish, heard: Heard) -> str:
        """Ask several agents the same; returns what to say.

        Raises:
            Conflict: none can answer.
        """
        return await self._grouping.ask_several(
            group, host, wish, heard, workspace="read-only", words=wording.PANEL_BEGINS
        )

    async def advance(self, group: str, rows: Sequence[Delegation]) -> bool:
        """Show the answers once all are there, and have them summed up; True once it is over."""
        root = rows[0].root_session
        if rows[-1].round == SUMS_UP:
            if self._grouping.find_end(rows[-1]) is None:
                return False
            await self._grouping.end(root, group)
            return True
        ends = [self._grouping.find_end(row) for row in rows]
        if None in ends or not self._grouping.is_asked(group, rows[0]):
            return False
        if all(end is TurnState.CANCELLED for end in ends):
            await self._grouping.end(root, group, wording.PANEL_STOPPED)
            return True
        answers = [self._read(row) for row in rows]
        await self._grouping.tell(root, f"answers:{group}", wording.side_by_side(answers))
        try:
            await self._sum_up(group, rows[0], answers)
        except Conflict as error:
            await self._grouping.end(root, group, str(error))
            return True
        return False

    def _read(self, row: Delegation) -> tuple[str, str]:
        found = self._grouping.rows.answer(row)
        return self._grouping.name_of(row.agent), found.text or found.problem or wording.NO_ANSWER

    async def _sum_up(
        self, group: str, first: Delegation, answers: Sequence[tuple[str, str]]
    ) -> None:
        host = self._grouping.sessions.session(first.root_session)
        if host is None:
            raise Conflict(wording.PANEL_STOPPED)
        await self._grouping.delegations.begin(
            NewDelegation(
                "panel",
                host.key.agent,
                host.id,
                None,
                wording.SUM_UP.format(question=first.task),
                first.person,
                host.id,
                speaker=self._grouping.speaker(host.key.agent),
                context=self._grouping.redact(wording.write_answers(answers)),
                group=group,
                round=SUMS_UP,
            )
        )


class Race:
    """The races of all places: several agents do one task, each on its branch; people pick one."""

    def __init__(self, runtime: Runtime, grouping: Grouping) -> None:
        self._runtime = runtime
        self._workspaces = runtime.workspaces
        self._grouping = grouping

    async def begin(self, group: str, host: Session, wish: Wish, heard: Heard) -> str:
        """Give several agents the same task; returns what to say.

        Raises:
            Conflict: none can do it, or there is no repository to work on.
        """
        if self._workspaces.repository(host) is None:
            raise Conflict(wording.RACE_NEEDS_REPOSITORY)
        return await self._grouping.ask_several(
            group, host, wish, heard, workspace="new-branch", words=wording.RACE_BEGINS
        )

    async def advance(self, group: str, rows: Sequence[Delegation]) -> bool:
        """Have people pick once all are done, and ship what they picked; True once it is over."""
        root = rows[0].root_session
        ends = [self._grouping.find_end(row) for row in rows]
        if None in ends or not self._grouping.is_asked(group, rows[0]):
            return False
        picked = self._grouping.store.picked(group)
        if picked is None:
            done = [row for row, end in zip(rows, ends, strict=True) if end is TurnState.DONE]
            changed = [(row, words) for row in done if (words := self._changed(row))]
            if changed:
                await self._offer(group, changed)
                return False
            await self._grouping.end(root, group, wording.NOTHING_TO_PICK)
            return True
        if picked.state == "open":
            return False
        chosen = next((row for row in rows if str(row.id) == picked.answer), None)
        words = wording.NONE_PICKED if chosen is None else await self._ship(chosen)
        await self._grouping.end(root, group, words)
        return True

    def _changed(self, row: Delegation) -> str:
        """Tell how much the work of an agent changes; empty if nothing."""
        session = self._grouping.sessions.session(row.session)
        changes = None if session is None else self._workspaces.describe(session).changes
        return "" if changes is None or not changes.files else wording.changed(changes)

    async def _offer(self, group: str, changed: Sequence[tuple[Delegation, str]]) -> None:
        """Ask people which of the candidates is to be shipped."""
        options, lines = [], [wording.WHICH_ONE]
        for row, words in changed:
            name = self._grouping.name_of(row.agent)
            session = self._grouping.sessions.session(row.session)
            link = "" if session is None else self._runtime.page(session.place)
            options.append(AskOption(str(row.id), name, CHOICE))
            lines.append(wording.CANDIDATE.format(agent=name, changed=words, link=link).strip())
        options.append(AskOption(LEAVE, wording.NONE_OF_THEM, "reject_once"))
        request = AskRequest(group, "\n".join(lines), tuple(options), kind="race")
        first, _ = changed[0]
        ledger = self._runtime.ledger
        await self._grouping.ask(
            group,
            TurnRef(first.session, first.turn),
            ledger.present(request),
            seconds=self._runtime.configuration.settings.ask_hours * 3600,
        )
        ledger.watch()

    async def _ship(self, row: Delegation) -> str:
        """Ship what an agent made; returns what to say. Repeating it changes nothing."""
        name = self._grouping.name_of(row.agent)
        session = self._grouping.sessions.session(row.session)
        if session is None:
            return wording.NONE_PICKED
        messages = self._grouping.turns.messages(row.turn)
        work = Work(session.title, messages, session.link, continued=True)
        try:
            shipped = await self._workspaces.ship_picked(session, work)
        except RepositoryError as error:
            return wording.NOT_SHIPPED.format(agent=name, problem=error)
        pushed = shipped.pushed
        where = "" if pushed is None else pushed.link or f"`{pushed.branch}`"
        done = wording.SHIPPED.format(agent=name, where=where) if where else ""
        return " ".join(filter(None, (done, shipped.note))) or wording.NOT_SHIPPED.format(
            agent=name, problem=wording.NO_CHANGES
        )
