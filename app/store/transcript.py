"""Stores the transcript: one numbering for everything the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    ScalarSelect,
    Select,
    bindparam,
    func,
    insert,
    literal,
    or_,
    select,
)
from sqlalchemy.exc import DBAPIError

from app.errors import StoreUnavailable
from app.model.keys import PlaceKey, SessionKey
from app.model.types import Entry, Overheard
from app.store.database import Database, Store, write
from app.store.database.backend import describe_cause
from app.store.dialects import JsonField
from app.store.tables import (
    OPEN_TURN,
    decision,
    delegation,
    heard,
    is_place,
    message,
    place,
    session,
    surface,
    transcript,
    turn,
)
from app.store.values import entry_of, entry_row

_ADD = (
    insert(transcript)
    .values(place=select(session.c.place).where(session.c.id == bindparam("of")).scalar_subquery())
    .returning(transcript.c.id)
)
_ADD_IN_PLACE = insert(transcript).returning(transcript.c.id)


ROWS_PER_ANSWER = 20
"""Rows read per requested answer: a longer answer is cut."""


def insert_entries(connection: Connection, entries: Sequence[Entry], now: float) -> list[int]:
    """Add entries inside the caller's commit and return their numbers."""
    return [
        connection.execute(
            _ADD,
            {
                "of": entry.session,
                "session": entry.session,
                "turn": entry.turn,
                "at": entry.at or now,
                **entry_row(entry),
            },
        ).scalar_one()
        for entry in entries
    ]


def insert_in_place(connection: Connection, place_id: int, entry: Entry, now: float) -> int:
    """Add an entry that belongs to no session, inside the caller's commit; return its number."""
    row = {"place": place_id, "at": now, **entry_row(entry)}
    return int(connection.execute(_ADD_IN_PLACE, row).scalar_one())


def _here(where: PlaceKey) -> ScalarSelect[int]:
    return select(place.c.id).where(is_place(where)).scalar_subquery()


def _merge(entries: Sequence[Entry]) -> list[Entry]:
    """Merge the rows of each answer into one entry."""
    joined: list[Entry] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if last is not None and entry.kind == last.kind == "text" and entry.turn == last.turn:
            joined[-1] = replace(last, text=last.text + entry.text)
        else:
            joined.append(entry)
    return joined


def _told_by(row: Row[Any]) -> Entry:
    """Read a message with its speaker's name and its current text."""
    text = row.text if row.edited is None else row.edited
    return replace(entry_of(row), speaker=row.agent or row.speaker, text=text)


_OF = bindparam("of", type_=Integer)
_asking = select(session.c.id).where(session.c.place == _OF).cte("asking", recursive=True)
_asking = _asking.union(
    select(delegation.c.session).where(delegation.c.caller_session == _asking.c.id)
)
_BELOW = select(session.c.place).where(session.c.id.in_(select(_asking.c.id)))
_TURN = select(turn.c.session, turn.c.surface).where(turn.c.id == bindparam("turn"))
_TOLD = (
    select(turn.c.told, turn.c.surface)
    .where(turn.c.session == _OF, turn.c.id < bindparam("turn"), turn.c.told.is_not(None))
    .order_by(turn.c.id)
)
_BEGAN = select(session.c.began_after).where(session.c.id == _OF)
_PLACES = select(surface.c.place).where(surface.c.session == _OF)
_COMMANDS = (
    select(message.c.id)
    .join(
        decision,
        (decision.c.place == message.c.place) & (decision.c.message_id == message.c.message_id),
    )
    .where(message.c.place.in_(_PLACES), decision.c.reason.like("command %"))
)
_BY_PEOPLE = (
    (transcript.c.kind == "message")
    & transcript.c.id.not_in(select(heard.c.message).where(heard.c.session == _OF))
    & transcript.c.id.not_in(_COMMANDS)
)
# How an answer ended is part of it: it names the branch and the pull request.
_ANSWERS = (transcript.c.kind == "text") | JsonField(transcript.c.data, "end").is_not(None)
_BY_AGENTS = _ANSWERS & (transcript.c.session != _OF)
_HERE = transcript.c.place.in_(_PLACES)
_OVERHEARD = (
    select(transcript, session.c.agent, message.c.edited)
    .outerjoin(session, session.c.id == transcript.c.session)
    .outerjoin(message, message.c.id == transcript.c.id)
    .where(_HERE, transcript.c.id > bindparam("since"), or_(_BY_PEOPLE, _BY_AGENTS))
    .order_by(transcript.c.id.desc())
    .limit(bindparam("rows"))
)
_LAST = select(func.max(transcript.c.id)).where(_HERE)


def _overheard(connection: Connection, turn_id: int, limit: int) -> Overheard:
    own = connection.execute(_TURN, {"turn": turn_id}).one()
    of = {"of": own.session}
    told = connection.execute(_TOLD, {**of, "turn": turn_id}).all()
    since = max([connection.execute(_BEGAN, of).scalar_one(), *(row.told for row in told)])
    wanted = {**of, "since": since, "rows": limit * ROWS_PER_ANSWER}
    rows = connection.execute(_OVERHEARD, wanted).all()
    entries = [_told_by(row) for row in reversed(rows) if row.edited != ""]
    last = connection.execute(_LAST, of).scalar()
    return Overheard(
        entries=tuple(_merge(entries)[-limit:]) if limit else (),
        upto=last or 0,
        introduced=any(row.surface == own.surface for row in told),
    )


async def check_turns(database: Database) -> None:
    """Run the query with which the latest turn began: a row that fails it fails every turn.

    Raises:
        StoreUnavailable: it failed.
    """

    def read(connection: Connection) -> None:
        latest = connection.execute(select(func.max(turn.c.id))).scalar()
        if latest is not None:
            _overheard(connection, latest, limit=1)

    try:
        await database.read(read)
    except DBAPIError as error:
        raise StoreUnavailable(describe_cause(error)) from error


def _after(which: ColumnElement[bool], after: int, limit: int) -> Select[Any]:
    """Select the rows after a number, in order."""
    begin = select(transcript).where(which, transcript.c.id > after)
    return begin.order_by(transcript.c.id).limit(limit)


def _delegated_entry(row: Row[Any]) -> Entry:
    """Read a row; a message for an agent that works for others belongs to its turn."""
    entry = entry_of(row)
    return (
        entry if row.asked is None else replace(entry, session=row.asked, turn=row.delegated_turn)
    )


class TranscriptStore(Store):
    """The transcript port."""

    @write
    def append(self, connection: Connection, entries: Sequence[Entry]) -> Sequence[int]:
        """Add entries and return their numbers."""
        return insert_entries(connection, entries, self._now())

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

    async def of_turn(self, session_id: int, turn_id: int) -> Sequence[Entry]:
        """Read what a turn did, asked and used, in order: not what was said."""
        query = (
            select(transcript)
            .where(transcript.c.session == session_id, transcript.c.turn == turn_id)
            .where(transcript.c.kind.in_(("tool", "ask", "usage")))
            .order_by(transcript.c.id)
        )
        return [entry_of(row) for row in await self._database.all(query)]

    async def read_place(self, where: PlaceKey, *, after: int, limit: int) -> Sequence[Entry]:
        """Read the entries of all sessions of a place, and everything said there, in order."""
        query = _after(transcript.c.place == _here(where), after, limit)
        return [entry_of(row) for row in await self._database.all(query)]

    async def read_tree(self, where: PlaceKey, *, after: int, limit: int) -> Sequence[Entry]:
        """Read the entries of a place and of those in which agents work for it, in order.

        What an agent there was asked has the session and the turn that do it.
        """

        def read(connection: Connection) -> Sequence[Entry]:
            here = connection.execute(select(_here(where))).scalar()
            below = set(connection.execute(_BELOW, {"of": here}).scalars()) - {here}
            if not below:
                rows = connection.execute(_after(transcript.c.place == here, after, limit))
                return [entry_of(row) for row in rows]
            query = (
                _after(transcript.c.place.in_([here, *below]), after, limit)
                .add_columns(heard.c.session.label("asked"), heard.c.turn.label("delegated_turn"))
                .outerjoin(
                    heard, (heard.c.message == transcript.c.id) & (transcript.c.place != here)
                )
            )
            return [_delegated_entry(row) for row in connection.execute(query)]

        return await self._database.read(read)

    async def window(self, where: PlaceKey, *, articles: int) -> int:
        """Return the number after which the last messages and turns of a place begin."""
        own = func.coalesce(transcript.c.turn, -transcript.c.id)
        first, last = func.min(transcript.c.id), func.max(transcript.c.id)
        lately = (
            select(first.label("first"))
            .where(transcript.c.place == _here(where))
            .group_by(own)
            .order_by(last.desc())
        )
        still_open = (
            select(first)
            .join(turn, turn.c.id == transcript.c.turn)
            .where(transcript.c.place == _here(where), OPEN_TURN)
        )

        def read(connection: Connection) -> int:
            begins = connection.execute(lately.limit(articles + 1)).scalars().all()
            if len(begins) <= articles:
                return 0
            opened = connection.execute(still_open).scalar()
            return int(min(*begins[:articles], *([opened] if opened else []))) - 1

        return await self._database.read(read)

    async def offered(self, session_id: int) -> Sequence[Mapping[str, str]]:
        """Return the commands that a session's agent offered last."""
        query = (
            select(transcript.c.data)
            .where(transcript.c.session == session_id, transcript.c.kind == "notice")
            .where(JsonField(transcript.c.data, "state") == "commands")
            .order_by(transcript.c.id.desc())
            .limit(1)
        )
        found = await self._database.all(query)
        return list(found[0].data["value"]) if found else []

    async def overheard(self, turn_id: int, *, limit: int) -> Overheard:
        """Read what others said in a turn's place since the session's last turn."""
        return await self._database.read(lambda connection: _overheard(connection, turn_id, limit))

    async def said(self, where: SessionKey, *, before: int, limit: int) -> Sequence[Entry]:
        """Read what people and agents said in the place of a surface, oldest first."""
        here = (
            select(surface.c.place)
            .where(
                surface.c.service == where.service,
                surface.c.external == where.external,
                surface.c.agent == where.agent,
            )
            .scalar_subquery()
        )
        # An answer belongs to the place of the surface that asked, not to all of its session's.
        asked = (
            select(turn.c.id)
            .join(surface, surface.c.id == turn.c.surface)
            .where(surface.c.place == here)
        )
        by_people = (transcript.c.place == here) & (transcript.c.kind == "message")
        rows = await self._database.all(
            select(transcript, session.c.agent, message.c.edited)
            .outerjoin(session, session.c.id == transcript.c.session)
            .outerjoin(message, message.c.id == transcript.c.id)
            .where(
                transcript.c.id < before, or_(by_people, transcript.c.turn.in_(asked) & _ANSWERS)
            )
            .order_by(transcript.c.id.desc())
            .limit(limit * ROWS_PER_ANSWER)
        )
        entries = [_told_by(row) for row in reversed(rows) if row.edited != ""]
        return _merge(entries)[-limit:]

    async def known(self, where: PlaceKey, message_ids: Sequence[str]) -> frozenset[str]:
        """Return which of these messages of a place are stored."""
        rows = await self._database.all(
            select(message.c.message_id).where(
                message.c.place == _here(where), message.c.message_id.in_(message_ids)
            )
        )
        return frozenset(row.message_id for row in rows)

    async def history(self, session_id: int, *, before_turn: int, limit: int) -> Sequence[Entry]:
        """Read the last messages and answers of the conversation before a turn, oldest first."""
        began = select(session.c.began_after).where(session.c.id == session_id).scalar_subquery()
        told = select(heard.c.message).where(
            heard.c.session == session_id, heard.c.turn < before_turn
        )
        said = (transcript.c.session == session_id) & (transcript.c.kind == "text")
        rows = await self._database.all(
            select(transcript, message.c.edited, literal(None).label("agent"))
            .outerjoin(message, message.c.id == transcript.c.id)
            .where(
                or_(transcript.c.id.in_(told), said & (transcript.c.turn < before_turn)),
                transcript.c.id > began,
            )
            .order_by(transcript.c.id.desc())
            .limit(limit * ROWS_PER_ANSWER)
        )
        return _merge([_told_by(row) for row in reversed(rows)])[-limit:]
