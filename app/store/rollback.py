"""Undoes the newest migration, so that the release before this one can use the database."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.exc import DatabaseError

from app.errors import Conflict
from app.store.backend import open_backend
from app.store.database import HEAD_REVISION, REVISION_BEFORE, migrate_to, revision_of
from app.store.dialects import is_postgresql
from app.store.tables import suspension


def roll_back(url: str) -> str:
    """Undo the newest migration; return the one that it is at then.

    Raises:
        Conflict: the release before could not use the result.
        StoreUnavailable: the database cannot be used.
    """
    backend = open_backend(url)
    engine = backend.engine
    try:
        if is_postgresql(engine.dialect):
            raise Conflict("the release before this one knows SQLite alone: restore its backup")
        with engine.connect() as connection:
            found = revision_of(connection)
            if found != HEAD_REVISION:
                raise Conflict(f"the database is at migration {found}: there is nothing to undo")
            restored = select(suspension).where(suspension.c.reason == "restored")
            if connection.execute(restored).first() is not None:
                raise Conflict(
                    "the database was restored and waits for `agent-bridge resume --all`, which "
                    "the release before this one does not know"
                )
        migrate_to(REVISION_BEFORE, engine, back=True)
    except DatabaseError as error:
        backend.refuse(error)
    finally:
        engine.dispose()
    return REVISION_BEFORE
