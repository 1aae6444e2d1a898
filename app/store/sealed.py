"""Stores secrets that others gave the bridge; each is sealed before it gets here."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, delete, select

from app.store.database import Database
from app.store.dialects import insert
from app.store.guarding import Seals
from app.store.tables import sealed

CHECK = "check:key"
"""The row by which a key is recognized."""


def recognizes(database: Database, seals: Seals) -> bool:
    """Tell whether a key is the one that this database is sealed with; the first one is."""
    first = insert(sealed).values(name=CHECK, value=seals.seal(CHECK, CHECK), kept_at=0.0)
    with database.engine.begin() as connection:
        connection.execute(first.on_conflict_do_nothing())
        kept = connection.execute(select(sealed.c.value).where(sealed.c.name == CHECK)).scalar_one()
    return seals.open(CHECK, kept) == CHECK


def put_sealed(connection: Connection, name: str, value: str, now: float) -> None:
    """Store something under a name inside the caller's commit, replacing what was there."""
    new = {"value": value, "kept_at": now}
    connection.execute(
        insert(sealed)
        .values(name=name, **new)
        .on_conflict_do_update(index_elements=[sealed.c.name], set_=new)
    )


class SealedStore:
    """The sealed-secrets port."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    def kept(self, name: str) -> str | None:
        """Read what is stored under a name."""
        row = self._database.one(select(sealed.c.value).where(sealed.c.name == name))
        return None if row is None else str(row.value)

    async def keep(self, name: str, value: str) -> None:
        """Store something under a name, replacing what was there."""
        now = self._now()
        await self._database.writer.run(lambda connection: put_sealed(connection, name, value, now))

    async def take(self, name: str) -> str | None:
        """Remove and return what is stored under a name: of several callers, one gets it."""
        change = delete(sealed).where(sealed.c.name == name).returning(sealed.c.value)
        return await self._database.writer.run(
            lambda connection: connection.execute(change).scalar_one_or_none()
        )
