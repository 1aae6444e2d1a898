"""Throws away what nobody needs any more: old deliveries, sent posts, and settled decisions.

What was said stays with its session; nothing that is unfinished is ever touched.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete

from app.store.database import Database
from app.store.tables import decision, delivery, post

LEAST_DAYS = 7
"""A captured delivery can be sent again within this time, so its signature must still be known."""
DAY_SECONDS = 86_400.0


async def forget(database: Database, *, now: float, days: float) -> int:
    """Forget what is older than this many days; returns how many rows that were."""
    before = now - max(days, LEAST_DAYS) * DAY_SECONDS

    def write(connection: Connection) -> int:
        old = (
            delete(delivery).where(delivery.c.received_at < before, delivery.c.state != "new"),
            delete(decision).where(decision.c.at < before),
            delete(post).where(post.c.created_at < before, post.c.state.in_(("done", "failed"))),
        )
        return sum(connection.execute(statement).rowcount for statement in old)

    return await database.writer.run(write)
