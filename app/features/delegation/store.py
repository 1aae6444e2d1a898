"""Stores delegations: begins them, reads what came of them, and stops what went on for too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select, update

from app.model.delegation import (
    Answer,
    Branch,
    DelegatedCall,
    Delegation,
    DelegationLimits,
    NewDelegation,
    StartedDelegation,
)
from app.model.keys import PlaceKey
from app.model.posts import NewPost
from app.model.types import Entry
from app.store.commits.delegating import (
    BY_TURN,
    EACH,
    IN_GROUP,
    OF_TURN,
    ONE,
    begin,
    costs,
    delegation_of,
    in_tree,
    list_open_trees,
    tell_limit,
)
from app.store.commits.endings import stop_delegations
from app.store.database import Store, write
from app.store.posts import insert_post
from app.store.tables import delegation, place, session, turn
from app.store.transcript import insert_entries
from app.store.tree import BRANCHES, OVER, SAID, branch_of, find_last_words
from app.store.values import turn_error

_callers = session.alias()
_BEGUN_IN = (
    EACH.join(_callers, _callers.c.id == delegation.c.caller_session)
    .join(place, place.c.id == _callers.c.place)
    .where(place.c.service == bindparam("service"), place.c.name == bindparam("called"))
    .order_by(delegation.c.id)
)
_cut_off = turn.alias()
_UNTOLD = (
    EACH.join(_cut_off, _cut_off.c.id == bindparam("by"))
    .where(delegation.c.caller_session == bindparam("of"), delegation.c.caller_turn.is_not(None))
    .where(
        or_(
            (delegation.c.caller_turn == _cut_off.c.id) & _cut_off.c.continued.is_(True),
            delegation.c.told_at.is_(None) & turn.c.ended_at.is_not(None),
        )
    )
    .order_by(delegation.c.id)
)

# What people had agents do together is told by who joins their answers.
_UNSHOWN = (
    BRANCHES.where(delegation.c.shown_at.is_(None), delegation.c.root_turn.is_not(None))
    .where(turn.c.state.in_(OVER), delegation.c.kind.in_(("message", "spawn")))
    .order_by(delegation.c.id)
)


class DelegationStore(Store):
    """What agents asked of each other."""

    @write
    def begin(
        self, connection: Connection, new: NewDelegation, limits: DelegationLimits
    ) -> StartedDelegation:
        """Begin a delegation in one commit, unless a limit is reached."""
        return begin(connection, new, limits, self._now())

    def delegation(self, delegation_id: int) -> Delegation | None:
        """Read one delegation."""
        return next(iter(self._read(ONE, of=delegation_id)), None)

    def of_turn(self, turn_id: int) -> Delegation | None:
        """Read the delegation that caused a turn."""
        return next(iter(self._read(OF_TURN, of=turn_id)), None)

    def by_turn(self, turn_id: int) -> Sequence[Delegation]:
        """List what a turn asked for, oldest first."""
        return self._read(BY_TURN, of=turn_id)

    def in_group(self, group: str) -> Sequence[Delegation]:
        """List the delegations that belong together, oldest first."""
        return self._read(IN_GROUP, of=group)

    def begun_in(self, where: PlaceKey) -> Sequence[Delegation]:
        """List what the agents of a place asked for, oldest first."""
        return self._read(_BEGUN_IN, service=where.service, called=where.name)

    def untold(self, session_id: int, turn_id: int) -> Sequence[Delegation]:
        """List what a session asked for and does not know the end of, oldest first."""
        return self._read(_UNTOLD, of=session_id, by=turn_id)

    def answer(self, asked: Delegation) -> Answer:
        """Read what came of a delegation so far."""

        def read(connection: Connection) -> Answer:
            row = connection.execute(select(turn).where(turn.c.id == asked.turn)).one()
            said = connection.execute(SAID, {"in": asked.session, "of": asked.turn}).all()
            cost = costs(connection, [asked.session]).get(asked.turn, 0.0)
            seconds = 0.0 if row.ended_at is None else row.ended_at - row.created_at
            return Answer(find_last_words(said), turn_error(row.error), seconds, cost, _calls(said))

        return self._database.look(read)

    @write
    def stop(self, connection: Connection, delegations: Sequence[int]) -> Sequence[int]:
        """Stop delegations and all that they led to, in one commit; return the posts."""
        asked = delegation.c.id.in_(delegations)
        return stop_delegations(connection, asked, self._now())

    def due(self, seconds: float) -> float | None:
        """Tell when the first tree with open work has gone on for this long."""
        began = [since for _, since in self._database.look(list_open_trees)]
        return min(began) + seconds if began else None

    @write
    def stop_due(self, connection: Connection, seconds: float) -> Sequence[int]:
        """Stop what is open in trees that have gone on for this long, and tell people once."""
        now, posts = self._now(), list[int]()
        for root, since in list_open_trees(connection):
            if since + seconds <= now:
                posts += stop_delegations(connection, in_tree(root), now)
                mark = f"limit:time:{root['root_turn'] or 0}:{since}"
                posts += tell_limit(connection, root, "time", mark, now)
        return posts

    @write
    def told(self, connection: Connection, delegations: Sequence[int]) -> None:
        """Record that the agent that asked knows these answers."""
        known = delegation.c.id.in_(delegations) & delegation.c.told_at.is_(None)
        connection.execute(update(delegation).where(known).values(told_at=self._now()))

    async def unshown(self) -> Sequence[Branch]:
        """List what ended and was not shown to people yet."""
        return await self._database.read(
            lambda connection: [branch_of(row) for row in connection.execute(_UNSHOWN).all()]
        )

    @write
    def show(
        self,
        connection: Connection,
        delegation_id: int,
        posts: Sequence[NewPost],
        entries: Sequence[Entry],
    ) -> Sequence[int]:
        """Tell people the end of a delegation, once; returns the posts to send."""
        now = self._now()
        own = update(delegation).where(delegation.c.id == delegation_id)
        first = own.where(delegation.c.shown_at.is_(None)).values(shown_at=now)
        if not connection.execute(first).rowcount:
            return ()
        insert_entries(connection, entries, now)
        return [insert_post(connection, new, now) for new in posts]

    def _read(self, query: Any, **values: object) -> list[Delegation]:
        return [delegation_of(row) for row in self._database.some(query, **values)]


def _calls(rows: Iterable[Any]) -> tuple[DelegatedCall, ...]:
    """List the tool calls of a turn, each as it was last reported."""
    calls = {
        row.data["call"]: DelegatedCall(row.data.get("kind") or "other", row.text)
        for row in rows
        if row.kind == "tool"
    }
    return tuple(calls.values())
