"""Measures what waits in the store: deliveries, turns, asks and posts, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Select, func, select

from app.metrics import Vital
from app.model.types import OPEN_TURN_STATES
from app.store.database import Database
from app.store.dialects import measure
from app.store.posts import UNSENT
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    DELIVERY_IS_NEW,
    OPEN_TURN,
    ask,
    delegation,
    delivery,
    post,
    suspension,
    turn,
)

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


class VitalStore:
    """The port for vitals."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

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
