"""Opens the store read-only: no lock, no writer, and the file stays unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import DatabaseError

from app.core.clock import SystemClock
from app.errors import StoreUnavailable
from app.store.database import HEAD_REVISION, Database
from app.store.guarding import Guard, put_on_guard
from app.store.stores import Stores


def file_of(url: str) -> Path:
    """Return the file of a SQLite address."""
    return Path(make_url(url).database or "")


def revision(url: str) -> str | None:
    """Return a database's migration; None if there is no database yet.

    Raises:
        StoreUnavailable: it cannot be read.
    """
    if not file_of(url).exists():
        return None
    database = _open_readonly(url)
    try:
        with database.engine.connect() as connection:
            row = connection.exec_driver_sql("select version_num from alembic_version").first()
            return str(row[0]) if row else None
    except DatabaseError as error:
        raise StoreUnavailable(f"{file_of(url)} cannot be read: {error.orig}") from error
    finally:
        database.engine.dispose()


@contextmanager
def reading(url: str, guard: Guard | None = None) -> Iterator[Stores | None]:
    """Read from a database; None if there is none yet. Without a guard sealed values are masked.

    Raises:
        StoreUnavailable: it cannot be read, or belongs to another version.
    """
    found = revision(url)
    if found is None:
        yield None
        return
    if found != HEAD_REVISION:
        raise StoreUnavailable(
            f"it is at migration {found}, this version needs {HEAD_REVISION}. "
            "Run `agent-bridge serve` once"
        )
    database = _open_readonly(url)
    if guard is not None:
        put_on_guard(database.engine.dialect, guard)
    try:
        yield Stores.on(database, SystemClock().now)
    except DatabaseError as error:
        raise StoreUnavailable(f"{file_of(url)} cannot be read: {error.orig}") from error
    finally:
        database.engine.dispose()


def _open_readonly(url: str) -> Database:
    # An address within an address: SQLite's own, inside SQLAlchemy's.
    own = f"file:{quote(str(file_of(url)))}"
    readonly = URL.create("sqlite", database=own, query={"mode": "ro", "uri": "true"})
    database = Database(readonly.render_as_string(hide_password=False))
    # A write is refused instead of waiting for ever.
    database.writer.close()
    return database
