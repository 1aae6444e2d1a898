"""Undoes the newest migration, so that the release before this one can use the database."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import JSON, Connection, Text, cast, column, select, table, update
from sqlalchemy.exc import DatabaseError

from app.errors import Conflict
from app.store.backend import open_backend
from app.store.schema import HEAD_REVISION, REVISION_BEFORE, migrate_to, revision_of


def roll_back(url: str) -> str:
    """Undo the newest migration; return the one that it is at then.

    Raises:
        Conflict: the release before could not use the result.
        StoreUnavailable: the database cannot be used.
    """
    backend = open_backend(url)
    engine = backend.engine
    try:
        with engine.connect() as connection:
            found = revision_of(connection)
            if found != HEAD_REVISION:
                raise Conflict(f"the database is at migration {found}: there is nothing to undo")
        migrate_to(REVISION_BEFORE, backend, back=True)
    except DatabaseError as error:
        backend.refuse(error)
    finally:
        engine.dispose()
    return REVISION_BEFORE


def write_out_notes(connection: Connection, words_of: Mapping[str, str]) -> None:
    """Give rows plain words where the release before could not read the code of their note."""
    for name, kept, place in (("transcript", "data", "note"), ("post", "content", "reason")):
        rows = table(name, column("id"), column("text"), column(kept, JSON))
        stored = rows.c[kept]
        for code, words in words_of.items():
            found = select(rows.c.id, stored).where(cast(stored, Text).contains(code))
            for number, value in connection.execute(found).all():
                if (value.get(place) or {}).get("code") != code:
                    continue
                value[place] = None
                new = {"text": words} if place == "note" else {}
                value |= {} if place == "note" else {"note": words}
                change = update(rows).where(rows.c.id == number)
                connection.execute(change.values({kept: value, **new}))
