"""Copies a conversation up to a row into a new place, for a fork of it.

The copy shares nothing that changes with its original: only the files of messages, which never do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, or_, select, update

from app.model.conversations import Copied
from app.model.keys import PlaceKey
from app.model.types import OPEN_TURN_STATES, TurnState
from app.store.dialects import insert
from app.store.tables import (
    OPEN_TURN,
    heard,
    is_place,
    message,
    place,
    session,
    surface,
    transcript,
    turn,
)


def fork(
    connection: Connection,
    where: PlaceKey,
    new: PlaceKey,
    after: int | None,
    title: str,
    now: float,
) -> list[Copied] | None:
    """Copy a conversation up to a row, or all of it, into a new place."""
    origin = connection.execute(select(place).where(is_place(where))).first()
    if origin is None:
        return None
    rows = _rows(connection, origin.id, after)
    if not rows:
        return None
    made = _Fork(connection, origin, new, rows, now)
    made.begin(title, where)
    made.copy()
    return made.copied()


def _rows(connection: Connection, place_id: int, after: int | None) -> list[Row[Any]]:
    """Read the rows to copy; a question that was still open then is left out."""
    query = select(transcript).where(transcript.c.place == place_id).order_by(transcript.c.id)
    rows = connection.execute(query if after is None else query.where(transcript.c.id <= after))
    found = rows.all()
    closed = {row.data["ask"] for row in found if row.kind == "ask" and row.data["state"] != "open"}
    return [row for row in found if row.kind != "ask" or row.data["ask"] in closed]


class _Fork:
    """One copy, and the new numbers of what is copied."""

    def __init__(
        self,
        connection: Connection,
        origin: Row[Any],
        new: PlaceKey,
        rows: Sequence[Row[Any]],
        now: float,
    ) -> None:
        self._connection = connection
        self._origin = origin
        self._new = new
        self._rows = rows
        self._now = now
        self.place = 0
        self._last = rows[-1].id
        copied = (transcript.c.place == origin.id, transcript.c.id <= self._last)
        self._said = select(transcript.c.id).where(*copied)
        self._worked = select(transcript.c.turn).where(*copied)
        self._sessions: dict[int, int] = {}
        self._surfaces: dict[int, int] = {}
        self._turns: dict[int, int] = {}
        self._numbers: dict[int, int] = {}

    def begin(self, title: str, where: PlaceKey) -> None:
        """Make the new place, with the sessions of all agents that are in the old one."""
        origin = self._origin
        kept = {each: getattr(origin, each) for each in ("latest", "listen", "verbosity")}
        self.place = self._insert(
            place,
            {
                **kept,
                "service": self._new.service,
                "name": self._new.name,
                "title": title,
                "repository": origin.repository,
                "holder": origin.holder,
                "predecessor": origin.predecessor,
                "forked_from": str(where),
            },
        )
        own = select(session).where(session.c.place == origin.id).order_by(session.c.id)
        made: dict[str, int] = {}
        for row in self._connection.execute(own).all():
            if row.agent not in made:
                made[row.agent] = self._add_session(row)
            self._sessions[row.id] = made[row.agent]

    def _add_session(self, row: Row[Any]) -> int:
        kept = {each: getattr(row, each) for each in ("agent", "mode", "model", "closed")}
        times = {"created_at": self._now, "updated_at": self._now}
        made = self._insert(session, {**kept, **times, "place": self.place})
        name = {"service": self._new.service, "external": self._new.name}
        self._surfaces[made] = self._insert(
            surface, {**name, "agent": row.agent, "session": made, "place": self.place}
        )
        return made

    def copy(self) -> None:
        """Copy turns, rows and messages."""
        self._copy_turns()
        self._copy_rows()
        self._copy_messages()

    def copied(self) -> list[Copied]:
        """Tell which session is a copy of which, and whose conversation ends with the fork."""
        rows = self._connection.execute(
            select(session).where(session.c.id.in_(self._sessions), session.c.closed.is_(None))
        )
        return [
            Copied(
                self._sessions[row.id],
                row.id,
                row.agent,
                None if self._goes_on(row.id, row.began_after) else row.acp_session_id,
            )
            for row in rows
        ]

    def _goes_on(self, session_id: int, began: int) -> bool:
        """Tell whether an agent's conversation has more than what was copied."""
        told = select(heard.c.message).where(heard.c.session == session_id)
        later = select(transcript.c.id).where(
            transcript.c.id > self._last,
            or_(transcript.c.session == session_id, transcript.c.id.in_(told)),
        )
        is_open = select(turn.c.id).where(turn.c.session == session_id, OPEN_TURN)
        found = (self._connection.execute(each).first() for each in (later, is_open))
        return began >= self._last or any(found)

    def _copy_turns(self) -> None:
        asked = select(heard.c.turn).where(heard.c.message.in_(self._said))
        found = self._connection.execute(
            select(turn)
            .where(turn.c.session.in_(self._sessions))
            .where(or_(turn.c.id.in_(asked), turn.c.id.in_(self._worked)))
            .order_by(turn.c.id)
        )
        for row in found.all():
            made = self._sessions[row.session]
            ended = row.state not in OPEN_TURN_STATES
            self._turns[row.id] = self._insert(
                turn,
                {
                    "session": made,
                    "surface": self._surfaces[made],
                    "state": row.state if ended else TurnState.CANCELLED,
                    "prompt": row.prompt,
                    "system": row.system,
                    "error": row.error,
                    "created_at": row.created_at,
                    "ended_at": row.ended_at or self._now,
                },
            )

    def _copy_rows(self) -> None:
        for row in self._rows:
            self._numbers[row.id] = self._insert(
                transcript,
                {
                    "place": self.place,
                    "session": self._sessions.get(row.session),
                    "turn": self._turns.get(row.turn),
                    "kind": row.kind,
                    "speaker": row.speaker,
                    "text": row.text,
                    "data": self._renumber(row.data),
                    "at": row.at,
                },
            )

    def _renumber(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Let a repeated message name the copies of what it repeats."""
        again = data.get("repeats")
        if not again:
            return dict(data)
        message_id, turn_id = again.get("message"), again.get("turn")
        copies = {
            "message": self._numbers.get(message_id, 0),
            "turn": self._turns.get(turn_id),
        }
        return {**data, "repeats": {**again, **copies}}

    def _copy_messages(self) -> None:
        of_rows = select(message).where(message.c.id.in_(self._said))
        for row in self._connection.execute(of_rows).mappings().all():
            copy = {**row, "id": self._numbers[row["id"]], "place": self.place}
            self._connection.execute(insert(message), copy)
        told = select(heard).where(
            heard.c.message.in_(self._said), heard.c.session.in_(self._sessions)
        )
        for each in self._connection.execute(told).all():
            copy = {
                "message": self._numbers[each.message],
                "session": self._sessions[each.session],
                "turn": self._turns.get(each.turn),
            }
            self._connection.execute(insert(heard).on_conflict_do_nothing(), copy)
        self._copy_told()

    def _copy_told(self) -> None:
        """Let each turn know up to which row its agent was told."""
        known = sorted(self._numbers)
        rows = self._connection.execute(
            select(turn.c.id, turn.c.told).where(turn.c.session.in_(self._sessions))
        )
        for row in rows.all():
            if row.told is None or row.id not in self._turns:
                continue
            at = bisect_right(known, row.told)
            told = self._numbers[known[at - 1]] if at else 0
            change = update(turn).where(turn.c.id == self._turns[row.id]).values(told=told)
            self._connection.execute(change)

    def _insert(self, table: Table, row: Mapping[str, Any]) -> int:
        return int(
            self._connection.execute(insert(table).returning(table.c.id), dict(row)).scalar_one()
        )
