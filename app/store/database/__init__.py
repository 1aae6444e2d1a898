"""Opens the store: DATA_DIR lock, connections, writer and readers.

One bridge uses one DATA_DIR: the lock is taken before the file is touched and held until the end.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Executable, Row, delete, event, insert, make_url
from sqlalchemy.exc import DatabaseError, DBAPIError

from app.errors import ConfigurationError, Conflict, DataDirInUse, StoreUnavailable
from app.model.keys import AreaOf, no_area
from app.model.text import clean_text
from app.retry import is_hurried
from app.store.database.backend import Backend, SqliteFile, describe_cause, has_failed
from app.store.database.schema import (
    HEAD_REVISION,
    REVISION_BEFORE,
    migrate,
    migrate_to,
    revision_of,
)
from app.store.database.writer import Writer
from app.store.dialects import POSTGRESQL, has_table, is_postgresql
from app.store.tables import sealed

T = TypeVar("T")
P = ParamSpec("P")

MOVING = "bridge_move"
"""The table that is there while rows are moved to a database; see `moving.py`."""
FILE_NAME = "bridge.db"
LOCK_NAME = "bridge.lock"
MOVED_NAME = "moved-to-postgresql"
LOCK_SECONDS = 5.0
"""How long a start waits for the lock. A killed bridge keeps it until the kernel has removed its
last thread, and so does a child that it was forking; the command line holds it for a moment."""
LOCK_LOOK_SECONDS = 0.02


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Hold the lock of a data folder.

    Raises:
        DataDirInUse: another bridge keeps holding it.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _lock(handle):
            if time.monotonic() >= deadline:
                raise DataDirInUse(str(data_dir))
            time.sleep(LOCK_LOOK_SECONDS)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Database:
    """One SQLite file, or a PostgreSQL schema, with its writer and its readers."""

    def __init__(self, url: str, *, readonly: bool = False) -> None:
        self._backend = open_backend(url, readonly=readonly)
        self.engine = self._backend.engine
        self.outage = self._backend.outage
        """Whether the database is away."""
        self.doubt = self._backend.doubt
        """Finds out whether the database is away, without waiting."""
        self.writer = Writer(self._backend)

    def open(self) -> None:
        """Bring the schema up to date and start the writer.

        Raises:
            StoreUnavailable: the file cannot be used; it is left unchanged.
        """
        self.upgrade()
        if is_postgresql(self.engine.dialect) and self._backend.read(_is_moving):
            raise StoreUnavailable(
                "data is being moved there", "Finish it: run `agent-bridge migrate` again."
            )
        self.writer.start()

    def upgrade(self) -> None:
        """Bring the schema up to date.

        Raises:
            StoreUnavailable: the database cannot be used; it is left unchanged.
        """
        try:
            self.check()
            migrate(self._backend)
        except DatabaseError as error:
            self._backend.refuse(error)

    def check(self) -> None:
        """Check that a server is one that can be used.

        Raises:
            StoreUnavailable: it is not; the remedy is said.
        """
        try:
            self._backend.check()
        except DatabaseError as error:
            self._backend.refuse(error)

    def close(self) -> None:
        """Commit waiting writes and close every connection."""
        self.writer.close()
        self._backend.close()

    async def check_writable(self) -> None:
        """Write a row and remove it: only that detects a full or read-only disk.

        Raises:
            StoreUnavailable: nothing can be written.
        """
        if self.outage.is_on:
            raise StoreUnavailable("the database is away")
        await self.writer.run(_write_and_remove)

    async def compact(self) -> None:
        """Leave nothing of deleted rows in the files: rewrite the database and empty its log.

        Raises:
            StoreUnavailable: the file is in use, or the disk is full.
        """
        if self._backend.is_file:
            await self.writer.alone(self._backend.compact)
            return
        # Next to the writer: this takes seconds, and this bridge must say that it is there.
        await self.read(self._backend.compact)

    def one(self, statement: Executable, **values: object) -> Row[Any] | None:
        """Read one row in this thread: a point read is cheaper than a thread switch.

        A statement that is built once and gets its values here costs half as much.
        """
        return self.look(lambda connection: connection.execute(statement, values).first())

    def some(self, statement: Executable, **values: object) -> Sequence[Row[Any]]:
        """Read few rows in this thread."""
        return self.look(lambda connection: connection.execute(statement, values).all())

    def look(self, function: Callable[[Connection], T]) -> T:
        """Run a function that reads little from a connection, in this thread.

        Raises:
            StoreUnavailable: the database cannot be read now.
        """
        try:
            return self._backend.read(function)
        except DBAPIError as error:
            if not has_failed(error):
                raise
            raise StoreUnavailable(describe_cause(error)) from error

    async def all(self, statement: Executable, **values: object) -> Sequence[Row[Any]]:
        """Read many rows in a thread."""
        return await self.read(lambda connection: connection.execute(statement, values).all())

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run a function that reads from a connection in a thread.

        Raises:
            StoreUnavailable: the database cannot be read now.
        """
        while True:
            try:
                return await asyncio.to_thread(self.look, function)
            except StoreUnavailable:
                if is_hurried() or not self.outage.is_on:
                    raise
            await self.outage.wait()


class Store:
    """What all stores on one database share."""

    def __init__(
        self, database: Database, now: Callable[[], float], area_of: AreaOf = no_area
    ) -> None:
        """Open it; `area_of` tells which larger place a place belongs to."""
        self._database = database
        self._now = now
        self._area_of = area_of


S = TypeVar("S", bound=Store)


def write(
    method: Callable[Concatenate[S, Connection, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Have a method of a store run by the writer, in one commit; return what it returns then.

    Raises:
        StoreUnavailable: nothing was written.
    """

    @wraps(method)
    async def run(store: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._database.writer.run(  # noqa: SLF001 - it belongs to the class
            lambda connection: method(store, connection, *args, **kwargs)
        )

    return run


def _is_moving(connection: Connection) -> bool:
    return has_table(connection, MOVING)


def _write_and_remove(connection: Connection) -> None:
    row = {"name": "check:writable", "value": "", "kept_at": 0.0}
    connection.execute(insert(sealed), row)
    connection.execute(delete(sealed).where(sealed.c.name == row["name"]))


def open_backend(url: str, *, readonly: bool = False) -> Backend:
    """Choose the backend of an address; read-only ones neither write nor wait."""
    backend: Backend
    if make_url(url).get_backend_name() == POSTGRESQL:
        # The import takes 0.2 s, and only PostgreSQL needs it.
        from app.store.database.postgresql import Server  # noqa: PLC0415

        backend = Server(url, readonly=readonly)
    else:
        backend = SqliteFile(_readonly(url) if readonly else url)
    event.listen(backend.engine, "before_cursor_execute", _clean_parameters, retval=True)
    return backend


def _readonly(url: str) -> str:
    # An address within an address: SQLite's own, inside SQLAlchemy's.
    own = f"file:{quote(make_url(url).database or '')}"
    query = {"mode": "ro", "uri": "true"}
    return URL.create("sqlite", database=own, query=query).render_as_string(hide_password=False)


def _clean_parameters(
    _connection: object, _cursor: object, statement: str, parameters: Any, *_context: object
) -> tuple[str, Any]:
    """Replace what a database refuses in all texts of a statement, written or searched for."""
    if isinstance(parameters, list):
        return statement, [_clean_values(each) for each in parameters]
    return statement, _clean_values(parameters)


def _clean_values(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {
            name: clean_text(value) if type(value) is str else value
            for name, value in values.items()
        }
    return tuple(clean_text(value) if type(value) is str else value for value in values)


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


def is_postgresql_address(url: str) -> bool:
    """Tell whether an address is that of a PostgreSQL database."""
    return make_url(url).get_backend_name() == POSTGRESQL


def note_move(data_dir: Path, where: str) -> None:
    """Note that the data of a folder's file is on a server now."""
    (data_dir / MOVED_NAME).write_text(where)


def check_not_moved(data_dir: Path) -> None:
    """Refuse the file of a folder whose data is on a server now: all work would be done twice.

    Raises:
        ConfigurationError: it was moved.
    """
    note = data_dir / MOVED_NAME
    if note.exists():
        raise ConfigurationError(
            "DATABASE_URL",
            f"the data was moved to {note.read_text()}",
            f"Set it to that address; to go back to the state before, remove {note}.",
        )


def sqlite_url(data_dir: Path) -> str:
    """Return the address of a data folder's default database."""
    return f"sqlite:///{quote(str(data_dir / FILE_NAME))}"
