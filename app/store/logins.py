"""Keeps log-ins: one row from the link that was given out to the end of what it began.

Only the hash of a link is kept, and of all who open a link at once one gets in.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from sqlalchemy import Connection, Update, delete, insert, select, update

from app.store.database import Database
from app.store.tables import login

NAME_BYTES = 16
"""Random, not counted: a new database never gives a name that an old cookie still carries."""


class Logins:
    """The log-in port on SQLite."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def offer(self, link_hash: str, *, until: float) -> None:
        """Keep a link, by the hash of its secret part; what has run out is forgotten."""
        now = self._now()
        row = {
            "id": secrets.token_urlsafe(NAME_BYTES),
            "link_hash": link_hash,
            "created_at": now,
            "expires_at": until,
        }

        def write(connection: Connection) -> None:
            connection.execute(delete(login).where(login.c.expires_at <= now))
            connection.execute(insert(login), row)

        await self._database.writer.run(write)

    async def begin(self, link_hash: str, *, until: float) -> str | None:
        """Use up a link; returns the name of the log-in, None if the link is of no use."""
        now = self._now()
        change = (
            update(login)
            .where(
                login.c.link_hash == link_hash,
                login.c.used_at.is_(None),
                login.c.revoked_at.is_(None),
                login.c.expires_at > now,
            )
            .values(used_at=now, expires_at=until)
            .returning(login.c.id)
        )
        return await self._database.writer.run(
            lambda connection: connection.execute(change).scalar_one_or_none()
        )

    def lasts(self, login_id: str) -> bool:
        """Tell whether a log-in was begun and has neither ended nor been revoked."""
        found = select(login.c.id).where(
            login.c.id == login_id,
            login.c.used_at.is_not(None),
            login.c.revoked_at.is_(None),
            login.c.expires_at > self._now(),
        )
        return self._database.one(found) is not None

    async def revoke(self, login_id: str) -> None:
        """End a log-in."""
        change = update(login).where(login.c.id == login_id, login.c.revoked_at.is_(None))
        await self._revoke(change.values(revoked_at=self._now()))

    async def revoke_all(self) -> None:
        """End every log-in and every link."""
        change = update(login).where(login.c.revoked_at.is_(None))
        await self._revoke(change.values(revoked_at=self._now()))

    async def _revoke(self, change: Update) -> None:
        await self._database.writer.run(lambda connection: connection.execute(change))
