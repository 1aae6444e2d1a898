"""Reads the record: rows by what they tell of, and all of them for an export."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from app.model.record import ORIGIN, RecordKind, RecordRow
from app.store.database import Store, write
from app.store.record import follow, is_behind
from app.store.record.chain import row_of
from app.store.tables import record

AT_ONCE = 1_000
"""Rows per read of an export."""
MOST_TURNS = 500
"""Turns whose rows are shown for one commit or pull request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """Which rows are listed; what is empty does not matter."""

    commit: str = ""
    """The beginning of a commit's hash: all rows of the turns that pushed it."""
    pull: str = ""
    """The address of a pull request: all rows of the turns that worked on it."""
    turn: int | None = None
    session: int | None = None
    person: str = ""
    """A part of the name of someone who asked or decided, or their account."""
    agents: tuple[str, ...] = ()
    """The ids of agents; several had the same name one after another."""
    repository: str = ""
    kind: str = ""


class RecordStore(Store):
    """The record."""

    async def is_behind(self) -> bool:
        """Tell whether something is to be recorded."""
        return await self._database.read(is_behind)

    @write
    def follow(self, connection: Connection) -> bool:
        """Record the next of what happened; returns whether there is more."""
        return follow(connection, self._now())

    async def find(
        self, wanted: RecordFilter, *, before: int | None, limit: int
    ) -> Sequence[RecordRow]:
        """List rows, newest first."""
        query = select(record).where(*_conditions(wanted)).order_by(record.c.number.desc())
        if before is not None:
            query = query.where(record.c.number < before)
        return [row_of(row) for row in await self._database.all(query.limit(limit))]

    async def head(self) -> tuple[int, str]:
        """Return the number of the last row and its hash."""
        last = select(record.c.number, record.c.hash).order_by(record.c.number.desc()).limit(1)
        rows = await self._database.all(last)
        return (rows[0].number, rows[0].hash) if rows else (0, ORIGIN)

    async def export(self, after: int, upto: int) -> AsyncIterator[RecordRow]:
        """Read all rows after a number and up to another one, in order."""
        for begun in range(after, upto, AT_ONCE):
            end = min(begun + AT_ONCE, upto)
            some = select(record).where(record.c.number > begun, record.c.number <= end)
            for row in await self._database.all(some.order_by(record.c.number)):
                yield row_of(row)


def _conditions(wanted: RecordFilter) -> list[ColumnElement[bool]]:
    equal = {"turn": wanted.turn, "session": wanted.session}
    named = {"repository": wanted.repository, "kind": wanted.kind}
    found = [record.c[name] == value for name, value in equal.items() if value is not None]
    found += [record.c[name] == value for name, value in named.items() if value]
    if wanted.agents:
        found.append(record.c.agent.in_(wanted.agents))
    if wanted.commit:
        begins = record.c.ref.startswith(wanted.commit.lower(), autoescape=True)
        found.append(_with_turn(and_(record.c.kind == RecordKind.PUSH, begins)))
    if wanted.pull:
        proposed = record.c.ref == wanted.pull
        found.append(_with_turn(and_(record.c.kind == RecordKind.PULL_REQUEST, proposed)))
    if wanted.person:
        columns = (record.c.asked_by, record.c.decided_by, record.c.asked_id, record.c.decided_id)
        part = wanted.person.lower()
        found.append(or_(*(func.lower(each).contains(part, autoescape=True) for each in columns)))
    return found


def _with_turn(which: ColumnElement[bool]) -> ColumnElement[bool]:
    """Match rows, and all others of their turns: who asked, who allowed, what ran."""
    other = record.alias()
    turns: Select[Any] = (
        select(other.c.turn)
        .where(other.c.number.in_(select(record.c.number).where(which).correlate(None)))
        .order_by(other.c.number.desc())
        .limit(MOST_TURNS)
    )
    return or_(which, record.c.turn.in_(turns))
