"""Stores notes until they are in their files, and searches the entries of daily logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from app.model.types import TurnRef
from app.model.updates import AskRequest
from app.store.commits.asks import open_ask
from app.store.database import Store, write
from app.store.dialects import add_entries, find_entries, insert, remove_entries
from app.store.tables import memory_day, memory_note


@dataclass(frozen=True, slots=True)
class KeptNote:
    """A note that belongs into its agent's file."""

    id: int
    agent: str
    session: int
    text: str
    at: float


class MemoryStore(Store):
    """What agents noted."""

    @write
    def propose(
        self,
        connection: Connection,
        agent: str,
        ref: TurnRef,
        text: str,
        request: AskRequest,
        *,
        deadline: float,
    ) -> Sequence[int]:
        """Store a note together with the ask whether to keep it; return the posts to send."""
        same = select(memory_note.c.id).where(
            memory_note.c.agent == agent,
            memory_note.c.session == ref.session,
            memory_note.c.text == text,
            memory_note.c.state == "proposed",
        )
        if connection.execute(same).first() is not None:
            return ()
        now = self._now()
        ask, post = open_ask(connection, request, ref, now, deadline=deadline, adrift=True)
        _insert(connection, agent, ref.session, text, "proposed", now, ask)
        return (post,)

    @write
    def keep(self, connection: Connection, agent: str, session: int, text: str) -> None:
        """Store a note that needs no answer."""
        _insert(connection, agent, session, text, "kept", self._now())

    async def kept(self) -> Sequence[KeptNote]:
        """List the notes that are to be written into files."""
        rows = await self._database.all(
            select(memory_note).where(memory_note.c.state == "kept").order_by(memory_note.c.id)
        )
        return [KeptNote(row.id, row.agent, row.session, row.text, row.at) for row in rows]

    @write
    def written(self, connection: Connection, note: int) -> None:
        """Forget a note that is in its file."""
        connection.execute(delete(memory_note).where(memory_note.c.id == note))

    async def versions(self, agent: str) -> Mapping[str, str]:
        """Return which version of each daily log the search knows."""
        rows = await self._database.all(select(memory_day).where(memory_day.c.agent == agent))
        return {row.day: row.version for row in rows}

    @write
    def index(
        self,
        connection: Connection,
        agent: str,
        day: str,
        version: str,
        entries: Sequence[tuple[str, str]],
    ) -> None:
        """Let the search know a daily log; without any entries, it is gone."""
        connection.execute(remove_entries(agent, day))
        known = {"agent": agent, "day": day}
        if not entries:
            which = (memory_day.c.agent == agent, memory_day.c.day == day)
            connection.execute(delete(memory_day).where(*which))
            return
        rows = [{**known, "number": number, "text": words} for number, words in entries]
        add_entries(connection, rows)
        statement = insert(memory_day).values(**known, version=version)
        changed = {"version": version}
        connection.execute(
            statement.on_conflict_do_update(index_elements=["agent", "day"], set_=changed)
        )

    async def search(
        self, agent: str, words: Sequence[str], *, every: bool, limit: int
    ) -> Sequence[tuple[str, str]]:
        """Find entries with any or with every word, best first, as pairs of day and id."""
        if not words:
            return []
        dialect = self._database.engine.dialect
        rows = await self._database.all(
            find_entries(dialect, agent, words, every=every, limit=limit)
        )
        return [(row.day, row.number) for row in rows]

    @write
    def forget(self, connection: Connection, agent: str) -> None:
        """Forget all notes and the index of an agent that was removed."""
        connection.execute(delete(memory_note).where(memory_note.c.agent == agent))
        connection.execute(delete(memory_day).where(memory_day.c.agent == agent))
        connection.execute(remove_entries(agent))


def _insert(
    connection: Connection,
    agent: str,
    session: int,
    words: str,
    state: str,
    now: float,
    ask: int | None = None,
) -> None:
    row = {"agent": agent, "session": session, "text": words, "state": state, "at": now}
    connection.execute(insert(memory_note), {**row, "ask": ask})
