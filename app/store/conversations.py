"""Lists, searches and reads conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, exists, func, or_, select

from app.model.conversations import Wanted
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey
from app.model.types import Session, SessionState, Thread
from app.store.database import Store
from app.store.dialects import hold_words
from app.store.sessions import STATE, select_sessions
from app.store.tables import checkout, delegation, is_place, place, session, transcript, turn
from app.store.values import entry_of, place_of, session_of

SEARCHED_ROWS = 100_000
"""Rows of the transcript that a search reads: years of a small team, a fraction of a second."""

MOST_FOUND = 2_000
"""Conversations that a search finds before they are put in order and shown page by page."""

_FIND = select(place.c.service, place.c.name).where(place.c.id == bindparam("of"))


class ConversationStore(Store):
    """The conversations that are stored."""

    async def list(self, wanted: Wanted, *, limit: int) -> Sequence[Thread]:
        """List conversations, most recently active first, or pinned ones before all others."""
        return await self._database.read(
            lambda connection: _threads(
                connection,
                limit,
                *_filters(wanted),
                *_by_last_row(wanted),
                *_skip_pinned(wanted, limit),
                pinned_first=wanted.pinned_first and wanted.before is None,
            )
        )

    async def search(self, words: Sequence[str], wanted: Wanted, *, limit: int) -> Sequence[Thread]:
        """List those whose title or recent text has all these words, most recent first."""
        return await self._database.read(
            lambda connection: _search(connection, words, wanted, limit)
        )

    async def thread(self, where: PlaceKey) -> Thread | None:
        """Read one place as in the list."""
        found = await self._database.read(
            lambda connection: _threads(connection, 1, is_place(where))
        )
        return found[0] if found else None

    def find(self, number: int) -> PlaceKey | None:
        """Tell which place has a number."""
        row = self._database.one(_FIND, of=number)
        return PlaceKey(row.service, row.name) if row else None


_said = transcript.alias()
_LAST = (
    select(_said.c.id)
    .where(_said.c.place == place.c.id, _said.c.kind != "thought")
    .where(or_(_said.c.text != "", _said.c.kind == "message"))
    .order_by(_said.c.id.desc())
    .limit(1)
    .correlate(place)
    .scalar_subquery()
)
_CLONED = (
    select(checkout.c.name)
    .join(session, session.c.id == checkout.c.session)
    .where(session.c.place == place.c.id)
    .order_by(checkout.c.session.desc(), checkout.c.number.desc())
    .limit(1)
    .correlate(place)
    .scalar_subquery()
)
_REPOSITORY: ColumnElement[str] = func.coalesce(place.c.repository, _CLONED, "")


_open = turn.alias()
_HELPERS = (
    select_sessions()
    .add_columns(delegation.c.root_place)
    .join(delegation, delegation.c.session == session.c.id)
    .join(_open, _open.c.id == delegation.c.turn)
    .where(_open.c.ended_at.is_(None))
)
_BEGUN = (
    select(session.c.place, func.max(delegation.c.root_place).label("root"))
    .join(session, session.c.id == delegation.c.session)
    .group_by(session.c.place)
    .subquery()
)
"""Where the conversation began that a place of agents belongs to."""


def _filters(wanted: Wanted) -> list[ColumnElement[bool]]:
    # What agents do for others belongs to the conversation in which it began.
    found: list[ColumnElement[bool]] = [place.c.service != SERVICE]
    if wanted.agent is not None:
        own = session.alias()
        found.append(
            exists().where(
                own.c.place == place.c.id, own.c.agent == wanted.agent, own.c.closed.is_(None)
            )
        )
    if wanted.repository is not None:
        found.append(_REPOSITORY.in_([wanted.repository]))
    if wanted.archived is not None:
        is_archived = place.c.archived_at.is_not(None)
        found.append(is_archived if wanted.archived else ~is_archived)
    if wanted.service is not None:
        found.append(place.c.service == wanted.service)
    if wanted.state is not None:
        present = select(session.c.place).where(session.c.closed.is_(None))
        found.append(place.c.id.in_(present.where(STATE.in_([wanted.state])).correlate(None)))
    return found


def _by_last_row(wanted: Wanted) -> list[ColumnElement[bool]]:
    """Narrow down by what happened last in a place."""
    found: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        found.append(transcript.c.at >= wanted.since)
    if wanted.before is not None:
        found.append(transcript.c.id < wanted.before)
    return found


def _skip_pinned(wanted: Wanted, limit: int) -> list[ColumnElement[bool]]:
    """Leave out the pinned ones that began the first page, on all pages after it."""
    if not wanted.pinned_first or wanted.before is None:
        return []
    pinned = place.c.pinned_at.is_not(None) & place.c.deleted_at.is_(None)
    first = select(place.c.id).where(pinned, *_filters(wanted)).order_by(place.c.pinned_at)
    return [place.c.id.not_in(first.limit(limit).correlate(None))]


def _threads(
    connection: Connection, limit: int, *which: ColumnElement[bool], pinned_first: bool = False
) -> list[Thread]:
    """List places by their last message: one index lookup per place."""
    order: list[ColumnElement[Any]] = [transcript.c.id.desc()]
    if pinned_first:
        order = [place.c.pinned_at.is_(None), place.c.pinned_at, *order]
    query = (
        select(
            transcript,
            place.c.id.label("number"),
            place.c.service,
            place.c.name,
            place.c.title,
            place.c.link,
            place.c.named,
            place.c.pinned_at,
            place.c.archived_at,
            place.c.forked_from,
            _REPOSITORY.label("repository"),
        )
        .select_from(place)
        .join(transcript, transcript.c.id == _LAST)
        .where(place.c.deleted_at.is_(None), *which)
        .order_by(*order)
        .limit(limit)
    )
    rows = connection.execute(query).all()
    here = [row.place for row in rows]
    members: dict[PlaceKey, list[Session]] = {}
    # Where no agent is left, those that were removed say whose conversation it was.
    shown = select_sessions().where(session.c.place.in_(here))
    open_first = (session.c.closed.is_not(None), session.c.id)
    for found in connection.execute(shown.order_by(*open_first)):
        member = session_of(found)
        there = members.setdefault(member.place, [])
        if member.state is not SessionState.REMOVED or not there or there[0].state is member.state:
            there.append(member)
    busy = _HELPERS.where(delegation.c.root_place.in_(here))
    helpers: dict[int, list[Session]] = {}
    for found in connection.execute(busy):
        helpers.setdefault(found.root_place, []).append(session_of(found))
    return [
        replace(_thread_of(row, members), helpers=tuple(helpers.get(row.place, ()))) for row in rows
    ]


def _thread_of(row: Row[Any], members: dict[PlaceKey, list[Session]]) -> Thread:
    key = PlaceKey(row.service, row.name)
    return Thread(
        key,
        row.title,
        row.link,
        entry_of(row),
        tuple(members.get(key, ())),
        row.repository,
        number=row.number,
        named=row.named or "",
        pinned=row.pinned_at is not None,
        archived=row.archived_at is not None,
        forked_from=place_of(row.forked_from),
    )


def _search(
    connection: Connection, words: Sequence[str], wanted: Wanted, limit: int
) -> list[Thread]:
    """Find places by title, and by what people and agents wrote in the newest rows."""
    newest = select(func.max(transcript.c.id)).scalar_subquery()
    last = func.max(transcript.c.id)
    said = (
        select(place.c.id.label("place"), last.label("row"))
        .join(_BEGUN, _BEGUN.c.place == transcript.c.place, isouter=True)
        .join(place, place.c.id == func.coalesce(_BEGUN.c.root, transcript.c.place))
        .where(transcript.c.id > newest - SEARCHED_ROWS, *_filters(wanted))
        .where(
            transcript.c.kind.in_(("message", "text")),
            *hold_words(connection.dialect, transcript.c.text, words),
        )
        .group_by(place.c.id)
        .order_by(last.desc())
        .limit(MOST_FOUND)
    )
    titles = (
        func.coalesce(place.c.named, "")
        + " "
        + place.c.title
        + " "
        + func.coalesce(session.c.title, "")
    )
    titled = (
        select(place.c.id)
        .outerjoin(session, session.c.place == place.c.id)
        .where(*hold_words(connection.dialect, titles, words), *_filters(wanted))
        .order_by(session.c.updated_at.desc().nulls_last())
        .limit(MOST_FOUND)
    )
    rows = {found.place: found.row for found in connection.execute(said)}
    which = [*rows, *connection.execute(titled).scalars()]
    texts = select(transcript.c.id, transcript.c.text).where(transcript.c.id.in_(rows.values()))
    found = {row.id: row.text for row in connection.execute(texts)}
    threads = _threads(connection, limit, place.c.id.in_(which), *_by_last_row(wanted))
    return [replace(each, found=found.get(rows.get(each.number, 0), "")) for each in threads]
