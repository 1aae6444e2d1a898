"""Opens the store: lock on DATA_DIR, connections, schema, and what is thrown away in time.

One bridge uses one DATA_DIR: the lock is taken before the file is touched and held until the end.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
from sqlalchemy import Connection, Engine, Executable, Row, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import QueuePool

from app.errors import DataDirInUse, StoreUnavailable
from app.store.writer import Writer

T = TypeVar("T")

BUSY_TIMEOUT_MS = 2_000
"""How long a write waits for somebody else's lock before everybody who waits is told."""
HEAD_REVISION = "0001"
"""The newest migration; tested against the files, so that alembic need not be imported to know."""
FILE_NAME = "bridge.db"
LOCK_NAME = "bridge.lock"


@contextmanager
def locked(data_dir: Path) -> Iterator[None]:
    """Hold the lock of a data folder.

    Raises:
        DataDirInUse: another bridge holds it.
    """
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise DataDirInUse(str(data_dir)) from error
    try:
        yield
    finally:
        os.close(handle)


class Database:
    """One SQLite file with its writer and its readers."""

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self.writer = Writer(self.engine)

    def open(self) -> None:
        """Bring the schema up to date and start the writer.

        Raises:
            StoreUnavailable: the file cannot be used; it is left as it is.
        """
        try:
            migrate(self.engine)
        except DatabaseError as error:
            raise StoreUnavailable(
                f"{error.orig}. The file is kept as it is: free some space, end whoever locks it, "
                "or move it away and restore a copy"
            ) from error
        self.writer.start()

    def close(self) -> None:
        """Commit what waits and close every connection."""
        self.writer.close()
        self.engine.dispose()

    def one(self, statement: Executable, **values: object) -> Row[Any] | None:
        """Read one row, here and now: a point read is cheaper than a thread.

        A statement that is built once and gets its values here costs half.
        """
        with self.engine.connect() as connection:
            return connection.execute(statement, values).first()

    async def all(self, statement: Executable, **values: object) -> Sequence[Row[Any]]:
        """Read many rows in a thread."""
        return await self.read(lambda connection: connection.execute(statement, values).all())

    async def read(self, function: Callable[[Connection], T]) -> T:
        """Run a reading function of a connection in a thread."""

        def work() -> T:
            with self.engine.connect() as connection:
                return function(connection)

        return await asyncio.to_thread(work)


def sqlite_url(data_dir: Path) -> str:
    """Name the default database of a data folder."""
    return f"sqlite:///{quote(str(data_dir / FILE_NAME))}"


def migrate(engine: Engine) -> None:
    """Apply the migrations that are missing; alembic is imported only when there are any."""
    with engine.connect() as connection:
        if _revision(connection) == HEAD_REVISION:
            return
    # 0.6 s of import that only the first start of a new version pays for.
    from alembic.config import Config  # noqa: PLC0415

    from alembic import command  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def migrations_folder() -> Path:
    """Find the migrations: inside the installed package, else beside it in a checkout."""
    installed = Path(__file__).parent / "migrations"
    return installed if installed.is_dir() else Path(__file__).parents[2] / "alembic"


def _revision(connection: Connection) -> str | None:
    found = connection.exec_driver_sql(
        "select name from sqlite_master where type = 'table' and name = 'alembic_version'"
    ).first()
    if found is None:
        return None
    row = connection.exec_driver_sql("select version_num from alembic_version").first()
    return row[0] if row else None


def _engine(url: str) -> Engine:
    engine = create_engine(
        url,
        poolclass=QueuePool,
        max_overflow=-1,  # lists are read in threads, and a point read must never wait for those
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
        json_serializer=_json,
    )
    event.listen(engine, "connect", _prepare)
    return engine


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # what only the slower one can: larger numbers, halves of surrogate pairs
        return json.dumps(value)


def _prepare(connection: Any, _record: object) -> None:
    """Set up one SQLite connection: durable at every commit, readers beside the writer."""
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
    ):
        connection.execute(f"pragma {pragma}")
