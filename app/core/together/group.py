"""What every act of several agents needs: who may take part, how far it is, and what is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from app.agents.agent import Agent
from app.clock import Clock
from app.core.delegation.delegations import Delegations
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.core.roster import Roster
from app.core.together import wording
from app.errors import Conflict
from app.model.delegation import Delegation, NewDelegation
from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.types import OPEN_TURN_STATES, Session, Speaker, TurnRef, TurnState
from app.model.updates import AskRequest
from app.retry import persist
from app.store.delegations import DelegationStore
from app.store.groups import GroupStore
from app.store.sessions import SessionStore
from app.store.turns import TurnStore


class Act(Protocol):
    """Something that several agents do together, as a group of delegations."""

    async def advance(self, group: str, rows: Sequence[Delegation]) -> bool:
        """Take the steps that are due; True once the group is over."""
        ...


class Grouping:
    """Begins, reads and ends groups of delegations."""

    def __init__(
        self,
        groups: GroupStore,
        delegations: Delegations,
        rows: DelegationStore,
        sessions: SessionStore,
        turns: TurnStore,
        *,
        roster: Roster,
        outbox: Outbox,
        feed: Feed,
        clock: Clock,
        target_of: Callable[[Session], str],
        decided: Callable[[PlaceKey, str], bool],
        redact: Callable[[str], str],
    ) -> None:
        """Work with groups; `target_of` names what a session works on, as places keep it.

        `decided` tells whether a message in a place was carried out.
        """
        self.groups = groups
        self.delegations = delegations
        self.rows = rows
        self.sessions = sessions
        self.turns = turns
        self.target_of = target_of
        self.redact = redact
        self._decided = decided
        self._roster = roster
        self._outbox = outbox
        self._feed = feed
        self._clock = clock

    def name_of(self, agent: str) -> str:
        """Return what people call an agent."""
        return self._roster.title(agent)

    def speaker(self, agent: str) -> Speaker:
        """Return an agent as the one who says something."""
        return Speaker(agent, self.name_of(agent), "agent")

    async def admit(self, agent: str, person: Speaker, root: Session, service: str = "") -> Agent:
        """Check that an agent can work, and for this person.

        `service` is the one on which a person gave the command; empty if an agent asks.

        Raises:
            Conflict: it cannot, or the person may not use it.
        """
        found = self._roster.find(agent)
        if found is None:
            raise Conflict(wording.NOT_HERE.format(agent=self._roster.title(agent)))
        if service:
            self.delegations.check_present(found, service, root)
        await self.delegations.check(found, [person], root)
        return found

    async def enter(self, heard: Heard, agent: str) -> Session:
        """Return the session of an agent in the place of a message; it is begun if needed."""
        number = await persist(self._clock, self.groups.enter, heard, agent)
        session = self.sessions.session(number)
        assert session is not None, "it was entered just now"
        return session

    async def ask_several(
        self, new: NewDelegation, agents: Sequence[str], root: Session, service: str
    ) -> tuple[list[str], list[str]]:
        """Ask several agents the same, each once; returns who was asked, and why others were not.

        `service` is the one on which the person asks.

        Raises:
            Conflict: none could be asked.
        """
        known = {row.agent for row in self.rows.in_group(new.group)}
        asked, refused = [], []
        for agent in agents:
            try:
                found = await self.admit(agent, new.person, root, service)
                if agent not in known:
                    await self.delegations.begin(replace(new, agent=agent))
            except Conflict as error:
                refused.append(str(error))
            else:
                asked.append(found.title)
        if not asked:
            raise Conflict("\n".join(refused))
        return asked, refused

    def is_asked(self, group: str, first: Delegation) -> bool:
        """Tell whether the command that began a group has asked everyone: then it is decided."""
        root = self.sessions.session(first.root_session)
        kind = f"{first.kind}:{root.place}:" if root is not None else ""
        return root is None or self._decided(root.place, group.removeprefix(kind))

    def person_of(self, turn: int) -> Speaker:
        """Return the person for whom a turn works.

        Raises:
            Conflict: it is not known.
        """
        cause = self.rows.of_turn(turn)
        said = self.turns.messages(turn) if cause is None else ()
        people = [each.speaker for each in said if each.speaker.kind == "person"]
        if cause is not None:
            return cause.person
        if not people:
            raise Conflict(wording.NO_PERSON)
        return people[-1]

    def find_end(self, row: Delegation) -> TurnState | None:
        """Tell how a delegation ended; None while it goes on."""
        return None if row.state in OPEN_TURN_STATES else row.state

    async def tell(self, session: int, mark: str, words: str) -> None:
        """Say something once where a session began."""
        posts = await persist(self._clock, self.groups.tell, session, mark, self.redact(words))
        self._outbox.send(*posts)
        self._feed.notify(session)

    async def ask(self, group: str, ref: TurnRef, request: AskRequest, *, seconds: float) -> None:
        """Ask people once about a group, where it began."""
        deadline = self._clock.now() + seconds

        async def ask() -> tuple[int, ...]:
            return await self.groups.ask(group, ref, request, deadline=deadline)

        self._outbox.send(*await persist(self._clock, ask))
        self._feed.notify(ref.session)

    async def end(self, session: int, group: str, words: str = "") -> None:
        """End a group, with the last words about it."""
        posts = await persist(self._clock, self.groups.end, session, group, self.redact(words))
        self._outbox.send(*posts)
        self._feed.notify(session)
