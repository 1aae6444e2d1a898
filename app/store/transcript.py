"""Keeps what happened, in one numbering for everything the page shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, insert, or_, select

from app.core.keys import PlaceKey
from app.core.types import Entry
from app.store.database import Database
from app.store.tables import heard, place, session, transcript
from app.store.values import entry_of


def insert_entries(connection: Connection, entries: Sequence[Entry], now: float) -> list[int]:
    """Add entries inside somebody's commit and return their numbers."""
    return [
        connection.execute(
            insert(transcript)
            .values(
                place=select(session.c.place)
                .where(session.c.id == entry.session)
                .scalar_subquery(),
                session=entry.session,
                turn=entry.turn,
                kind=entry.kind,
                speaker=entry.speaker,
                text=entry.text,
                data=dict(entry.data),
                at=entry.at or now,
            )
            .returning(transcript.c.id)
        ).scalar_one()
        for entry in entries
    ]


class Transcript:
    """The transcript port on SQLite."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def append(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Add entries and return their numbers."""
        return await self._database.writer.run(
            lambda connection: insert_entries(connection, entries, self._now())
        )

    async def read(self, session_id: int, *, after: int, limit: int) -> Sequence[Entry]:
        """Read a session's entries, its messages among them, in order."""
        told = select(heard.c.message).where(heard.c.session == session_id)
        rows = await self._database.all(
            select(transcript)
            .where(
                or_(transcript.c.session == session_id, transcript.c.id.in_(told)),
                transcript.c.id > after,
            )
            .order_by(transcript.c.id)
            .limit(limit)
        )
        return [entry_of(row) for row in rows]

    async def read_place(self, where: PlaceKey, *, after: int, limit: int) -> Sequence[Entry]:
        """Read the entries of all sessions of a place, and everything said there, in order."""
        here = (
            select(place.c.id)
            .where(place.c.service == where.service, place.c.name == where.name)
            .scalar_subquery()
        )
        rows = await self._database.all(
            select(transcript)
            .where(transcript.c.place == here, transcript.c.id > after)
            .order_by(transcript.c.id)
            .limit(limit)
        )
        return [entry_of(row) for row in rows]

    async def history(self, session_id: int, *, before_turn: int, limit: int) -> Sequence[Entry]:
        """Read the last messages and answers before a turn, oldest first."""
        told = select(heard.c.message).where(
            heard.c.session == session_id, heard.c.turn < before_turn
        )
        said = (transcript.c.session == session_id) & (transcript.c.kind == "text")
        rows = await self._database.all(
            select(transcript)
            .where(
                or_(transcript.c.id.in_(told), said & (transcript.c.turn < before_turn)),
            )
            .order_by(transcript.c.id.desc())
            .limit(limit)
        )
        return [entry_of(row) for row in reversed(rows)]
