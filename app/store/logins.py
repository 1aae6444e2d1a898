"""Stores logins: one row from the issued link to the end of its login.

Only the hash of a link is stored, and if several people open a link at once, one gets in.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from sqlalchemy import ColumnElement, Connection, Update, and_, delete, insert, select, update

from app.store.database import Database
from app.store.tables import login

NAME_BYTES = 16
"""Random, not counted: a new database never reuses a name that an old cookie still has."""


class LoginStore:
    """The login port."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def offer(self, link_hash: str, *, until: float) -> None:
        """Store a link by the hash of its secret part, and delete expired ones."""
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

    def is_open(self, link_hash: str) -> bool:
        """Tell whether a link can be used, without using it."""
        return self._database.one(select(login.c.id).where(self._open(link_hash))) is not None

    async def begin(self, link_hash: str, *, until: float) -> str | None:
        """Use up a link; return the name of the login, None if the link is not valid."""
        change = (
            update(login)
            .where(self._open(link_hash))
            .values(used_at=self._now(), expires_at=until)
            .returning(login.c.id)
        )
        return await self._database.writer.run(
            lambda connection: connection.execute(change).scalar_one_or_none()
        )

    def lasts(self, login_id: str, *, seconds: float = 0.0) -> bool:
        """Tell whether a login was started and neither expires within `seconds` nor was revoked."""
        found = select(login.c.id).where(
            login.c.id == login_id,
            login.c.used_at.is_not(None),
            login.c.revoked_at.is_(None),
            login.c.expires_at > self._now() + seconds,
        )
        return self._database.one(found) is not None

    async def revoke(self, login_id: str) -> None:
        """End a login."""
        change = update(login).where(login.c.id == login_id, login.c.revoked_at.is_(None))
        await self._revoke(change.values(revoked_at=self._now()))

    async def revoke_all(self) -> None:
        """End every login and every link."""
        change = update(login).where(login.c.revoked_at.is_(None))
        await self._revoke(change.values(revoked_at=self._now()))

    def _open(self, link_hash: str) -> ColumnElement[bool]:
        return and_(
            login.c.link_hash == link_hash,
            login.c.used_at.is_(None),
            login.c.revoked_at.is_(None),
            login.c.expires_at > self._now(),
        )

    async def _revoke(self, change: Update) -> None:
        await self._database.writer.run(lambda connection: connection.execute(change))
