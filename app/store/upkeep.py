"""Measures what waits in the store and for how long, and deletes what is no longer needed.

Messages and their files stay with their session; files that agents made for people are kept for as
long as posts are. Nothing unfinished is ever deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, Delete, Select, String, cast, func, or_, select

from app.metrics import Vital
from app.model.keys import PlaceKey, SessionKey
from app.model.types import OPEN_TURN_STATES
from app.store.database import Database, Store
from app.store.dialects import delete_some, measure
from app.store.posts import UNSENT
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    DELIVERY_IS_NEW,
    OPEN_TURN,
    ask,
    decision,
    delegation,
    delivery,
    forgotten,
    gap,
    grant,
    message,
    place,
    position,
    post,
    schedule,
    spending,
    surface,
    suspension,
    turn,
)
from app.store.values import content_of

_NUMBER = func.count().label("number")


def _oldest(column: Any, *which: Any) -> Select[Any]:
    return select(_NUMBER, func.min(column).label("first")).where(*which)


_WAITING = (
    ("inbox_waiting", "inbox_oldest_seconds", _oldest(delivery.c.received_at, DELIVERY_IS_NEW)),
    ("asks_open", "ask_oldest_seconds", _oldest(ask.c.created_at, ASK_IS_OPEN, ASK_HOLDS)),
    (
        "outbox_waiting",
        "outbox_oldest_seconds",
        _oldest(post.c.created_at, post.c.state.in_(UNSENT)),
    ),
)
_TURNS = select(turn.c.state, _NUMBER).where(OPEN_TURN).group_by(turn.c.state)
_HELD = select(_NUMBER).where(turn.c.state == "queued", turn.c.held.is_(True))
_DELEGATED = (
    select(_NUMBER)
    .select_from(delegation)
    .join(turn, turn.c.id == delegation.c.turn)
    .where(OPEN_TURN)
)
_COUNTED: tuple[tuple[str, Any], ...] = (
    ("turns_held", _HELD),
    ("delegations_open", _DELEGATED),
    ("pauses", select(_NUMBER).select_from(suspension)),
)


@dataclass(frozen=True, slots=True)
class Pending:
    """What a bridge goes on with when it starts, once nothing is paused."""

    posts: Sequence[tuple[SessionKey, str]]
    """Where each unsent post goes, and its words."""
    turns: Sequence[tuple[PlaceKey, str, str]]
    """The place, the agent and the state of each turn that runs then."""
    asks: int
    """Open asks."""
    deliveries: int
    """Events that were stored and not read."""
    schedules: int
    """Schedules that are due."""


class VitalStore(Store):
    """The port for vitals."""

    async def read(self) -> Sequence[Vital]:
        """Measure what waits."""
        now = self._now()
        found: list[Vital] = []
        for counted, aged, query in _WAITING:
            (row,) = await self._database.all(query)
            age = 0.0 if row.first is None else max(now - row.first, 0.0)
            found += [Vital(counted, row.number), Vital(aged, age)]
        turns = {row.state: row.number for row in await self._database.all(_TURNS)}
        found += [
            Vital("turns_open", turns.get(state, 0), (("state", state.value),))
            for state in OPEN_TURN_STATES
        ]
        for name, query in _COUNTED:
            (row,) = await self._database.all(query)
            found.append(Vital(name, row.number))
        return [*found, Vital("database_bytes", await self._database.read(measure))]

    async def pending(self) -> Pending:
        """Read what a bridge goes on with when it starts: posts, turns, asks, events, schedules."""
        database, now = self._database, self._now()
        posts = await database.all(select(post).where(post.c.state.in_(UNSENT)).order_by(post.c.id))
        turns = await database.all(
            select(place.c.service, place.c.name, surface.c.agent, turn.c.state)
            .select_from(turn)
            .join(surface, surface.c.id == turn.c.surface)
            .join(place, place.c.id == surface.c.place)
            .where(OPEN_TURN, turn.c.held.is_(False), turn.c.paused.is_(None))
            .where(turn.c.state != "parked")
            .order_by(turn.c.id)
        )
        counts = [
            (await database.all(select(func.count()).where(*which)))[0][0]
            for which in (
                (ASK_IS_OPEN, ASK_HOLDS),
                (DELIVERY_IS_NEW,),
                (schedule.c.state == "active", schedule.c.due_at <= now),
            )
        ]
        return Pending(
            [
                (SessionKey(row.service, row.external, row.agent), _post_words(row.content))
                for row in posts
            ],
            [(PlaceKey(row.service, row.name), row.agent, row.state) for row in turns],
            *counts,
        )


LEAST_DAYS = 7
"""A captured delivery can be replayed within this time, so its signature must be kept."""
DAY_SECONDS = 86_400.0
AT_ONCE = 500
"""Rows per commit: few enough to delay no other write."""


async def forget(
    database: Database, *, now: float, days: float, post_days: float | None = None
) -> int:
    """Delete what is older than this many days; return the number of rows.

    Posts may be kept for another time.
    """
    before = now - max(days, LEAST_DAYS) * DAY_SECONDS
    posted = now - (post_days or days) * DAY_SECONDS
    last_day = datetime.fromtimestamp(before, UTC).date().isoformat()

    some = partial(delete_some, database.engine.dialect, limit=AT_ONCE)
    old = (
        some(delivery, delivery.c.received_at < before, delivery.c.state != "new"),
        some(decision, decision.c.at < before),
        some(gap, gap.c.ended < before),
        some(position, position.c.at < before),
        some(forgotten, forgotten.c.at < before),
        some(spending, spending.c.day < last_day),
        some(grant, or_(grant.c.expires_at < before, grant.c.ended_at < before)),
        some(post, post.c.created_at < posted, post.c.state.in_(("done", "failed"))),
    )
    gone = 0
    for statement in old:
        while slice_gone := await database.writer.run(partial(_delete, statement)):
            gone += slice_gone
    return gone


async def named_files(database: Database) -> set[str]:
    """Collect the addresses of all files that came with a message or are still to be sent."""
    with_files = select(message.c.files).where(cast(message.c.files, String) != "[]")
    rows = await database.all(with_files)
    unsent = await database.all(select(post.c.content).where(post.c.state.in_(UNSENT)))
    leaving = [content["files"] for (content,) in unsent]
    came = [files for (files,) in rows]
    return {str(file["url"]) for files in (*came, *leaving) for file in files}


async def unread_deliveries(database: Database) -> list[bytes]:
    """Return the raw bytes of unsettled deliveries."""
    rows = await database.all(select(delivery.c.body).where(delivery.c.state == "new"))
    return [body for (body,) in rows]


def _delete(statement: Delete, connection: Connection) -> int:
    return connection.execute(statement).rowcount


def _post_words(stored: Mapping[str, Any]) -> str:
    content = content_of(stored)
    return content.said or content.text or content.note or content.state
