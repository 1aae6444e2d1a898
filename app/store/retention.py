"""Deletes what is no longer needed: old deliveries, sent posts, settled decisions, ended grants.

Messages and their files stay with their session; files that agents made for people are kept for as
long as posts are. Nothing unfinished is ever deleted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from sqlalchemy import Connection, Delete, String, cast, or_, select

from app.store.database import Database
from app.store.dialects import delete_some
from app.store.posts import UNSENT
from app.store.tables import decision, delivery, forgotten, grant, message, post, spending

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
