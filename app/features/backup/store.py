"""Copies a whole database into a folder while others write to it, and back into an empty one.

A copy is one moment of the database: SQLite's own backup of the file, or all tables of a PostgreSQL
schema in one snapshot. What only the processes of the moment need is left out.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import quote

from sqlalchemy import Connection, delete, insert, make_url, select
from sqlalchemy.exc import DatabaseError

from app.errors import BackupUnusable, StoreUnavailable
from app.store.commits.admission import ALL
from app.store.database import FILE_NAME, open_backend, sqlite_url
from app.store.database.backend import Backend
from app.store.database.schema import HEAD_REVISION, migrate, migrate_to, revision_of
from app.store.dialects import MEMORY_TEXT, POSTGRESQL
from app.store.gaps import forget_distance
from app.store.tables import duty, member, metadata, process, progress, suspension

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composed

Driver: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

LAYOUT: Final = "layout.json"
BLOCK_BYTES: Final = 1024 * 1024
_OF_THE_MOMENT: Final = {table.name for table in (duty, member, process, progress)}
_COPIED: Final = (
    *(table.name for table in metadata.sorted_tables if table.name not in _OF_THE_MOMENT),
    MEMORY_TEXT,
)
"""The tables that are copied, each after those that it refers to."""


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """What was copied."""

    database: str
    """`sqlite` or `postgresql`."""
    revision: str
    rows: dict[str, int]


def kind_of(url: str) -> str:
    """Return the kind of database at an address."""
    return str(make_url(url).get_backend_name())


def copy_out(url: str, folder: Path) -> StoreCopy:
    """Copy a database into an empty folder.

    Raises:
        StoreUnavailable: it cannot be read, or is damaged.
    """
    return _copy_server(url, folder) if kind_of(url) == POSTGRESQL else _copy_file(url, folder)


def copy_in(url: str, folder: Path, copied: StoreCopy, now: float) -> None:
    """Fill an empty database with a copy, in which everything is paused.

    Raises:
        BackupUnusable: the copy does not fit, or the database is not empty.
        StoreUnavailable: it cannot be written.
    """
    check_fit(url, copied)
    if copied.database == POSTGRESQL:
        _fill_server(url, folder, copied, now)
        return
    with _connected(sqlite_url(folder)) as (backend, _, connection):
        migrate(backend)
        with connection.begin():
            _pause(connection, now)
    file = _file_of(url)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.move(folder / FILE_NAME, file)


def _pause(connection: Connection, now: float) -> None:
    """Let nothing be read, begun or sent before the operator says so."""
    connection.execute(delete(suspension).where(suspension.c.scope == ALL))
    connection.execute(insert(suspension), {"scope": ALL, "reason": "restored", "since": now})
    # What came after the backup was made may have been answered then.
    forget_distance(connection, now)


def check_fit(url: str, copied: StoreCopy) -> None:
    """Refuse a copy that this database or this release cannot take.

    Raises:
        BackupUnusable: says what to do.
    """
    if copied.database != kind_of(url):
        raise BackupUnusable(
            f"its database is {copied.database}, and DATABASE_URL names another kind. Restore it "
            "there, then move it with `agent-bridge migrate --to`"
        )
    if copied.revision > HEAD_REVISION:
        raise BackupUnusable(
            f"it has migration {copied.revision}, and this release knows {HEAD_REVISION}. "
            "Use the release that made it"
        )
    if not _is_empty(url, copied.revision):
        raise BackupUnusable("there is a database already. A backup is restored to an empty one")


def _is_empty(url: str, revision: str) -> bool:
    """Tell whether nothing is stored; a server may have the tables already."""
    if kind_of(url) != POSTGRESQL:
        return not _file_of(url).exists()
    with _connected(url) as (_, _, connection):
        found = revision_of(connection)
        if found != revision:
            return found is None
        tables = (metadata.tables[name] for name in _COPIED if name in metadata.tables)
        return all(connection.execute(select(each).limit(1)).first() is None for each in tables)


def _file_of(url: str) -> Path:
    return Path(make_url(url).database or "")


def _copy_file(url: str, folder: Path) -> StoreCopy:
    name = f"file:{quote(str(_file_of(url)))}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(name, uri=True)) as source,
            closing(sqlite3.connect(folder / FILE_NAME)) as target,
        ):
            source.backup(target)
            target.execute("delete from process")
            target.commit()
            # Without a log: the copy is one file.
            target.execute("pragma journal_mode = delete")
            (verdict,) = target.execute("pragma integrity_check").fetchone()
            if verdict != "ok":
                raise StoreUnavailable(f"the database is damaged: {verdict}")
            (revision,) = target.execute("select version_num from alembic_version").fetchone()
            return StoreCopy("sqlite", revision, _count(target.execute))
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{_file_of(url)} cannot be copied: {error}") from error


def _count(execute: Any) -> dict[str, int]:
    tables = execute("select name from sqlite_master where type = 'table'").fetchall()
    known = {name for (name,) in tables}
    return {
        name: execute(f'select count(*) from "{name}"').fetchone()[0]  # noqa: S608 - our own names
        for name in _COPIED
        if name in known
    }


def _copy_server(url: str, folder: Path) -> StoreCopy:
    rows: dict[str, int] = {}
    with _connected(url) as (_, driver, connection):
        driver.execute("begin isolation level repeatable read read only")
        revision = revision_of(connection)
        if revision is None:
            raise StoreUnavailable("the database has no tables")
        columns = {name: _columns_of(driver, name) for name in _COPIED}
        for name, listed in columns.items():
            with (folder / name).open("wb") as file, driver.cursor() as cursor:
                with cursor.copy(_write(f'copy "{name}" ({{}}) to stdout', listed)) as copy:
                    for data in copy:
                        file.write(data)
                rows[name] = cursor.rowcount
        layout = {"columns": columns, "sequences": _read_sequences(driver)}
        (folder / LAYOUT).write_text(json.dumps(layout))
        driver.execute("rollback")
    return StoreCopy(POSTGRESQL, revision, rows)


def _fill_server(url: str, folder: Path, copied: StoreCopy, now: float) -> None:
    layout = json.loads((folder / LAYOUT).read_text())
    with _connected(url) as (backend, driver, connection):
        migrate_to(copied.revision, backend)
        driver.execute("begin")
        for name, listed in layout["columns"].items():
            with (folder / name).open("rb") as file, driver.cursor() as cursor:
                with cursor.copy(_write(f'copy "{name}" ({{}}) from stdin', listed)) as copy:
                    while data := file.read(BLOCK_BYTES):
                        copy.write(data)
                if cursor.rowcount != copied.rows[name]:
                    raise BackupUnusable(f"the table {name} is not whole: use another backup")
        for sequence, (last, is_used) in layout["sequences"].items():
            driver.execute("select setval(%s::text::regclass, %s, %s)", (sequence, last, is_used))
        _pause(connection, now)
        driver.execute("commit")
        migrate(backend)


def _columns_of(driver: Driver, name: str) -> list[str]:
    """List the columns of a table that are stored as they are."""
    found = driver.execute(
        "select column_name from information_schema.columns where table_name = %s"
        " and table_schema = current_schema() and is_generated = 'NEVER' order by ordinal_position",
        (name,),
    )
    return [row[0] for row in found]


def _read_sequences(driver: Driver) -> dict[str, tuple[int, bool]]:
    """Read how far the numbers of each table are: none is used twice."""
    tables = [name for name in _COPIED if name in metadata.tables]
    named = driver.execute(
        "select pg_get_serial_sequence(table_name, column_name)"
        " from information_schema.columns where table_schema = current_schema()"
        " and table_name = any(%s) and pg_get_serial_sequence(table_name, column_name) is not null",
        (tables,),
    ).fetchall()
    # Without the schema: a restore may have another one.
    names = [name.rpartition(".")[2] for (name,) in named]
    query = "select last_value, is_called from {}"
    return {name: driver.execute(_write(query, [name])).fetchone() for name in names}  # type: ignore[misc] # a sequence is one row


def _write(statement: str, names: Sequence[str]) -> Composed:
    from psycopg.sql import SQL, Identifier  # noqa: PLC0415 - only PostgreSQL needs it

    return SQL(cast("Any", statement)).format(SQL(", ").join(map(Identifier, names)))


@contextmanager
def _connected(url: str) -> Iterator[tuple[Backend, Driver, Connection]]:
    """Connect to a server: as the driver does, and as the store does."""
    backend = open_backend(url)
    try:
        with backend.engine.connect() as connection:
            driver = cast("Driver", connection.connection.driver_connection)
            yield backend, driver, connection
    except DatabaseError as error:
        backend.refuse(error)
    finally:
        backend.engine.dispose()
