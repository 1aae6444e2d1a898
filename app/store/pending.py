"""Reads what a bridge goes on with when it starts: posts, turns, asks, events and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select

from app.core.keys import PlaceKey, SessionKey
from app.core.suspension import Pending
from app.store.database import Database
from app.store.posts import UNSENT
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    DELIVERY_IS_NEW,
    OPEN_TURN,
    place,
    post,
    schedule,
    surface,
    turn,
)
from app.store.values import content_of


async def read_pending(database: Database, now: float) -> Pending:
    """Read what a start at this time would go on with."""
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
        [(SessionKey(row.service, row.external, row.agent), _words(row.content)) for row in posts],
        [(PlaceKey(row.service, row.name), row.agent, row.state) for row in turns],
        *counts,
    )


def _words(stored: Mapping[str, Any]) -> str:
    content = content_of(stored)
    return content.said or content.text or content.note or content.state
