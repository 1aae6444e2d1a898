"""Defines what differs between databases beyond their SQL, and does it for a SQLite file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

import orjson
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import (
    DatabaseError,
    DBAPIError,
    InterfaceError,
    OperationalError,
    PendingRollbackError,
)
from sqlalchemy.pool import QueuePool

from app.errors import FileUnusable, StoreUnavailable
from app.model.text import clean_json
from app.retry import Outage
from app.store.dialects import measure

READ_ONLY = "25006"
"""PostgreSQL's code for a server that takes no writes, such as one that another has replaced."""
LOCK_TIMEOUT = "55P03"
"""PostgreSQL's code for a lock that was not free in time."""


def has_failed(error: Exception) -> bool:
    """Whether the cause is the database, not the statement: locked, full, damaged, away."""
    if isinstance(error, OperationalError | InterfaceError | PendingRollbackError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    return (
        error.connection_invalidated
        or getattr(error.orig, "sqlstate", "") == READ_ONLY
        or "malformed" in str(error.orig)
    )


def is_locked(error: Exception) -> bool:
    """Whether a lock of another session was not free in time."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == LOCK_TIMEOUT


def describe_cause(error: Exception) -> str:
    """Return a short cause; SQLAlchemy's own message would print the statement and its values."""
    if isinstance(error, StoreUnavailable):
        return error.cause
    if is_locked(error):
        return "database is locked"
    original = getattr(error, "orig", None)
    return str(original if original is not None else error) or type(error).__name__


@dataclass(slots=True)
class Fence:
    """Guards every commit of this process."""

    gone: Callable[[], None]
    """Is called in the writer's thread when another member has removed this one."""
    name: str = ""
    epoch: int = 0
    """Tells this start from all others under its name; zero while this process is no member."""

    @property
    def mark(self) -> str:
        """The statement that counts a commit of this process, if it is a member."""
        change = "update member set commits = commits + 1"
        return f"{change} where {self._own} returning commits"

    @property
    def count(self) -> str:
        """The query for the number of its commits."""
        return f"select commits from member where {self._own}"  # noqa: S608 - our own words

    @property
    def _own(self) -> str:
        name = self.name.replace("'", "''")
        return f"name = '{name}' and epoch = {self.epoch}"

    def refuse(self) -> NoReturn:
        """End what this process does, because it is no member any more.

        Raises:
            StoreUnavailable: always.
        """
        self.gone()
        raise StoreUnavailable("another member has taken over from this one")


T = TypeVar("T")

BUSY_TIMEOUT_MS = 2_000
"""How long a write waits for another process's lock before all waiting writes fail."""
COMPACTED_BYTES = 512 * 1024 * 1024
"""The largest database that is rewritten, which takes a few seconds; in a larger file deleted rows
are overwritten where they are."""
CHECKPOINTS = 5
"""How often emptying the log is tried: readers take a fraction of the busy timeout."""

_NUL = rb"\u0000"
_REFUSED = re.compile(r"\\u0000|\\u[dD][89a-fA-F]|NaN|Infinity")


class Backend(Protocol):
    """A kind of database: how it is connected to, and how a transaction is alone in it."""

    engine: Engine
    is_file: bool
    """Whether only one thing can be done to it at a time."""
    outage: Outage
    """Whether it is away."""

    def connect(self) -> Connection:
        """Connect in order to write."""
        ...

    def begin(self, connection: Connection, fence: Fence | None) -> bool:
        """Begin a transaction, in which no other writes; tell whether its process may write."""
        ...

    def commit(self, connection: Connection, keep_asking: Callable[[], bool]) -> None:
        """Commit it: done if this returns, undone if it raises.

        While only a server that is away knows which, `keep_asking` says whether to ask again.
        """
        ...

    def read(self, function: Callable[[Connection], T]) -> T:
        """Run a function that reads."""
        ...

    def prepare_migration(self, connection: Connection) -> None:
        """Make all that follows one transaction, in which no other bridge writes."""
        ...

    def compact(self, connection: Connection) -> None:
        """Leave nothing of deleted rows."""
        ...

    def doubt(self) -> None:
        """Find out whether it is away, without waiting."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...

    def check(self) -> None:
        """Check that the database is one that can be used.

        Raises:
            StoreUnavailable: it is not; the remedy is said.
        """
        ...

    def refuse(self, error: DatabaseError) -> NoReturn:
        """Say why the database cannot be used, and the remedy.

        Raises:
            StoreUnavailable: always.
        """
        ...


def to_json(value: object) -> str:
    """Write a value as JSON that every database can read fields of."""
    try:
        written = orjson.dumps(value)
    except TypeError:  # what only the slower one can: larger numbers, halves of surrogate pairs
        return json.dumps(clean_json(value), ensure_ascii=False)
    if _NUL in written:
        written = orjson.dumps(clean_json(orjson.loads(written)))
    return written.decode()


def clean_written(text: str) -> str:
    """Return JSON that an earlier version wrote, as it is written now if a database refuses it."""
    return to_json(json.loads(text)) if _REFUSED.search(text) else text


class SqliteFile:
    """A SQLite file."""

    is_file = True

    def __init__(self, url: str) -> None:
        self.outage = Outage()
        self.engine = create_engine(
            url,
            poolclass=QueuePool,
            max_overflow=-1,  # lists are read in threads, and a point read must never wait for them
            connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
            json_serializer=to_json,
        )
        event.listen(self.engine, "connect", _prepare)

    def connect(self) -> Connection:
        """Open the file."""
        return self.engine.connect()

    def begin(self, connection: Connection, _fence: Fence | None) -> bool:
        """Take the lock of the file; the holder of DATA_DIR may write."""
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return True

    def commit(self, connection: Connection, _keep_asking: Callable[[], bool]) -> None:
        """Write everything to the disk."""
        connection.exec_driver_sql("COMMIT")

    def read(self, function: Callable[[Connection], T]) -> T:
        """Run a function that reads."""
        with self.engine.connect() as connection:
            return function(connection)

    def prepare_migration(self, connection: Connection) -> None:
        """Begin: the driver does so at the first row that is written, and not for tables."""
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def compact(self, connection: Connection) -> None:
        """Rewrite the file and empty its log."""
        if measure(connection) <= COMPACTED_BYTES:
            connection.exec_driver_sql("vacuum")
        for _ in range(CHECKPOINTS):
            # Each waits for readers as long as a write waits for a lock.
            busy, *_ = connection.exec_driver_sql("pragma wal_checkpoint(truncate)").one()
            if not busy:
                return
        raise StoreUnavailable("its log is being read and could not be emptied")

    def doubt(self) -> None:
        """Do nothing: a file is not away."""

    def close(self) -> None:
        """Close the file."""
        self.engine.dispose()

    def check(self) -> None:
        """Do nothing: a file is refused when it is read."""

    def refuse(self, error: DatabaseError) -> NoReturn:
        """Say why the file cannot be used."""
        fault = getattr(error.orig, "sqlite_errorname", "")
        raise FileUnusable(str(error.orig), fault) from error


def _prepare(connection: Any, _record: object) -> None:
    """Set up one SQLite connection: durable at every commit, readers parallel to the writer."""
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
        f"busy_timeout = {BUSY_TIMEOUT_MS}",
    ):
        connection.execute(f"pragma {pragma}")
