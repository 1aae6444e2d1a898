"""Stores what only the bridge may read: sealed secrets, and sealed words of messages.

The transcript has messages without their secrets; the agent gets them unchanged.
"""

from __future__ import annotations

from sqlalchemy import (
    Connection,
    Integer,
    String,
    cast,
    delete,
    func,
    literal,
    select,
)

from app.store.database import Database, Store, write
from app.store.dialects import insert
from app.store.guarding import Seals, guard_of
from app.store.tables import OPEN_TURN, heard, message, sealed, turn

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


class SealedStore(Store):
    """The sealed-secrets port."""

    def kept(self, name: str) -> str | None:
        """Read what is stored under a name."""
        row = self._database.one(select(sealed.c.value).where(sealed.c.name == name))
        return None if row is None else str(row.value)

    @write
    def keep(self, connection: Connection, name: str, value: str) -> None:
        """Store something under a name, replacing what was there."""
        now = self._now()
        put_sealed(connection, name, value, now)

    @write
    def take(self, connection: Connection, name: str) -> str | None:
        """Remove and return what is stored under a name: of several callers, one gets it."""
        change = delete(sealed).where(sealed.c.name == name).returning(sealed.c.value)
        return connection.execute(change).scalar_one_or_none()


_PREFIX = "message:"
OF_MESSAGE = sealed.c.name == literal(_PREFIX) + cast(message.c.id, String)
"""Joins a message with its sealed text."""

_number = cast(func.substr(sealed.c.name, len(_PREFIX) + 1), Integer)
_NEEDED = select(heard.c.message).join(turn, turn.c.id == heard.c.turn).where(OPEN_TURN)
_FORGET = delete(sealed).where(sealed.c.name.startswith(_PREFIX), _number.not_in(_NEEDED))


def keep_words(connection: Connection, number: int, text: str, now: float) -> None:
    """Seal a message's text inside the caller's commit, if it holds a secret."""
    guard = guard_of(connection)
    if guard is not None and guard.must_seal(text):
        row = {"name": f"{_PREFIX}{number}", "value": guard.seal(text), "kept_at": now}
        connection.execute(insert(sealed), row)


def forget_words(connection: Connection) -> None:
    """Delete sealed text that no open turn needs, inside the caller's commit."""
    connection.execute(_FORGET)
