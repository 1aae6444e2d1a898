"""Stores delegations: begins them, reads what came of them, and stops what went on for too long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, or_, select, update

from app.model.delegation import (
    SERVICE,
    Answer,
    DelegatedCall,
    Delegation,
    DelegationLimits,
    Errand,
    NewDelegation,
    StartedDelegation,
)
from app.model.keys import PlaceKey
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
from app.store.commits.endings import stop_errands
from app.store.database import Database
from app.store.tables import delegation, place, session, told, transcript, turn
from app.store.values import turn_error

_callers = session.alias()
_BEGUN_IN = (
    EACH.join(_callers, _callers.c.id == delegation.c.caller_session)
    .join(place, place.c.id == _callers.c.place)
    .where(place.c.service == bindparam("service"), place.c.name == bindparam("called"))
    .order_by(delegation.c.id)
)
_ERRAND = (
    select(
        delegation.c.caller_session,
        delegation.c.workspace,
        delegation.c.branch,
        delegation.c.folder,
    )
    .join(session, session.c.id == delegation.c.session)
    .join(place, place.c.id == session.c.place)
    .where(delegation.c.session == bindparam("of"), place.c.service == SERVICE)
    .order_by(delegation.c.id)
    .limit(1)
)
GROUP_OVER = "over:"
"""What comes before the name of a group in the mark that tells that it is over."""
_HELD = (
    select(delegation.c.id)
    .where(
        delegation.c.session == bindparam("of"),
        delegation.c.kind == "race",
        ~select(told.c.mark).where(told.c.mark == GROUP_OVER + delegation.c.group).exists(),
    )
    .limit(1)
)
_REVIEWED = (
    select(delegation.c.caller_session)
    .where(
        delegation.c.session == bindparam("of"),
        delegation.c.kind == "review",
        delegation.c.workspace == "read-only",
    )
    .order_by(delegation.c.id.desc())
    .limit(1)
)
"""The author's own turns have the same kind, but no such workspace."""
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
_SAID = (
    select(transcript.c.kind, transcript.c.text, transcript.c.data)
    .where(transcript.c.session == bindparam("in"), transcript.c.turn == bindparam("of"))
    .where(transcript.c.kind.in_(("text", "tool")))
    .order_by(transcript.c.id)
)


class DelegationStore:
    """The delegation port."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def begin(self, new: NewDelegation, limits: DelegationLimits) -> StartedDelegation:
        """Begin a delegation in one commit, unless a limit is reached."""
        return await self._database.writer.run(
            lambda connection: begin(connection, new, limits, self._now())
        )

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

    def errand(self, session_id: int) -> Errand | None:
        """Read what a session was begun for; None if people began it."""
        row = self._database.one(_ERRAND, of=session_id)
        return (
            None
            if row is None
            else Errand(row.caller_session, row.workspace, row.branch, row.folder)
        )

    def author_of(self, session_id: int) -> int | None:
        """Return the session whose work another one was asked to review; None if it was not."""
        row = self._database.one(_REVIEWED, of=session_id)
        return None if row is None else int(row.caller_session)

    def is_held(self, session_id: int) -> bool:
        """Tell whether the work of a session waits for people to pick it."""
        return self._database.one(_HELD, of=session_id) is not None

    def untold(self, session_id: int, turn_id: int) -> Sequence[Delegation]:
        """List what a session asked for and does not know the end of, oldest first."""
        return self._read(_UNTOLD, of=session_id, by=turn_id)

    def answer(self, asked: Delegation) -> Answer:
        """Read what came of a delegation so far."""

        def read(connection: Connection) -> Answer:
            row = connection.execute(select(turn).where(turn.c.id == asked.turn)).one()
            said = connection.execute(_SAID, {"in": asked.session, "of": asked.turn}).all()
            cost = costs(connection, [asked.session]).get(asked.turn, 0.0)
            seconds = 0.0 if row.ended_at is None else row.ended_at - row.created_at
            return Answer(_last_words(said), turn_error(row.error), seconds, cost, _calls(said))

        return self._database.look(read)

    async def stop(self, delegations: Sequence[int]) -> Sequence[int]:
        """Stop delegations and all that they led to, in one commit; return the posts."""

        def write(connection: Connection) -> list[int]:
            asked = delegation.c.id.in_(delegations)
            return stop_errands(connection, asked, self._now())

        return await self._database.writer.run(write)

    def due(self, seconds: float) -> float | None:
        """Tell when the first tree with open work has gone on for this long."""
        began = [since for _, since in self._database.look(list_open_trees)]
        return min(began) + seconds if began else None

    async def stop_due(self, seconds: float) -> Sequence[int]:
        """Stop what is open in trees that have gone on for this long, and tell people once."""

        def write(connection: Connection) -> list[int]:
            now, posts = self._now(), list[int]()
            for root, since in list_open_trees(connection):
                if since + seconds <= now:
                    posts += stop_errands(connection, in_tree(root), now)
                    mark = f"limit:time:{root['root_turn'] or 0}:{since}"
                    posts += tell_limit(connection, root, "time", mark, now)
            return posts

        return await self._database.writer.run(write)

    async def told(self, delegations: Sequence[int]) -> None:
        """Record that the agent that asked knows these answers."""
        known = delegation.c.id.in_(delegations) & delegation.c.told_at.is_(None)
        change = update(delegation).where(known).values(told_at=self._now())
        await self._database.writer.run(lambda connection: connection.execute(change))

    def _read(self, query: Any, **values: object) -> list[Delegation]:
        return [delegation_of(row) for row in self._database.some(query, **values)]


def read_last_words(connection: Connection, session_id: int, turn_id: int) -> str:
    """Read the words that a turn ended with; of a turn that works, what it has said so far."""
    return _last_words(connection.execute(_SAID, {"in": session_id, "of": turn_id}).all())


def _calls(rows: Iterable[Any]) -> tuple[DelegatedCall, ...]:
    """List the tool calls of a turn, each as it was last reported."""
    calls = {
        row.data["call"]: DelegatedCall(row.data.get("kind") or "other", row.text)
        for row in rows
        if row.kind == "tool"
    }
    return tuple(calls.values())


def _last_words(rows: Iterable[Any]) -> str:
    """Join what a turn said after its last call, or, if it said nothing then, before it."""
    parts = [""]
    for row in rows:
        if row.kind == "tool":
            parts.append("")
        elif not row.data.get("parent"):
            parts[-1] += row.text
    return next((part.strip() for part in reversed(parts) if part.strip()), "")
