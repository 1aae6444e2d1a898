"""Connects to PostgreSQL: one commit at a time over all bridges, and each known to be done or not.

A commit begins with a lock that all bridges on one schema share, as they would share the lock of
a file: what is read in it stays true until it ends, and ids become visible in their order.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg.types.string import StrDumper
from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from app.errors import StoreUnavailable
from app.retry import Outage, is_hurried
from app.store.database.backend import Fence, has_failed, is_locked, to_json
from app.store.database.holding import Holding, step_aside
from app.store.database.server_check import check_server, refuse_server
from app.store.dialects import measure
from app.store.tables import metadata

logger = logging.getLogger(__name__)

T = TypeVar("T")

DRIVER = "postgresql+psycopg"
CONNECT_SECONDS = 5
"""How long one attempt to connect may take: a server that is up answers within milliseconds."""
AWAY_SECONDS = 15.0
"""How long a read waits for a server that is away: a restart takes a few seconds."""
BEGIN_SECONDS = 2.0
"""How long a write waits for a server that is away, as for a locked file; callers try again."""
SILENCE = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""After about ten seconds without a sign of the server its connection is taken to be lost: a cable
that is cut says nothing."""
LOOK_SECONDS = 0.1
POOL_SIZE = 16
"""Connections that stay open: more than threads that read at the same time."""
LOCK_SECONDS = 5
"""How long a write waits for the commit of another bridge."""
READ_LOCK_MS = 250
"""How long one attempt to read waits for a table that another session has locked: the event loop
waits with it."""
IDLE_SECONDS = 3
"""After which the server ends a commit whose bridge does nothing: a stopped process must not keep
all others from writing."""
COMPACTED_BYTES = 512 * 1024 * 1024
"""The largest database that is rewritten, which takes a few seconds."""
LOCK_CLASS = 0x6B72_6467
"""The first half of the lock's key; the second is the schema's."""
LOCK = f"select pg_advisory_xact_lock({LOCK_CLASS}, hashtext(current_schema()))"
"""Waits for the lock that all commits of one schema share, and holds it until the end."""
UNKNOWN_TRANSACTION = "22023"
"""The code for a transaction that is "in the future": the server crashed, and nothing is left."""
_WAIT = f"set local lock_timeout = '{LOCK_SECONDS}s'"
_BEGIN = f"begin; {_WAIT}; {LOCK}, pg_current_xact_id()::text"
_TABLES = "; ".join(f'select 1 from "{name}" limit 1' for name in metadata.tables)  # noqa: S608 - our own names
_STATUS = "select pg_xact_status(%s::text::xid8)"


class Server:
    """A schema on a PostgreSQL server."""

    is_file = False

    def __init__(self, url: str, *, readonly: bool = False) -> None:
        address = name_driver(url)
        self._away_seconds = 0.0 if readonly else AWAY_SECONDS
        self.engine = create_engine(
            address,
            poolclass=QueuePool,
            pool_size=POOL_SIZE,
            pool_use_lifo=True,  # the one used last has the statements prepared
            max_overflow=-1,  # lists are read in threads, and a point read must never wait for them
            pool_reset_on_return=None,
            isolation_level="AUTOCOMMIT",
            connect_args={
                "options": _options(address, readonly=readonly),
                "connect_timeout": CONNECT_SECONDS,
                "application_name": "agent-bridge",
                **SILENCE,
            },
            json_serializer=to_json,
            hide_parameters=True,
            execution_options={"preserve_rowcount": True},  # also of an insert that does nothing
        )
        event.listen(self.engine, "do_connect", self._connect)
        event.listen(self.engine, "connect", _prepare)
        self._transaction = ""
        self._mark: tuple[str, int] | None = None
        """Where the last commit of a member is counted, and its number."""
        self._lock = threading.Lock()
        self._is_away = False
        self._is_locked = False
        """Whether it counts as away because another session has locked a table."""
        self._back = threading.Event()
        self._closed = threading.Event()
        self._lookout: threading.Thread | None = None
        self.outage: Outage = Holding()

    def begin(self, connection: Connection, fence: Fence | None) -> bool:
        """Begin a transaction, alone among all bridges; a lost connection is opened again."""
        deadline = time.monotonic() + BEGIN_SECONDS
        while True:
            try:
                if connection.invalidated:
                    connection.rollback()
                return self._begin(connection, fence if fence and fence.epoch else None)
            except psycopg.Error as error:
                if not connection.invalidated and _driver(connection).closed:
                    connection.invalidate(error)
                if not connection.invalidated or time.monotonic() > deadline:
                    raise OperationalError(_BEGIN, None, error) from error
            self._pause()

    def _begin(self, connection: Connection, fence: Fence | None) -> bool:
        """Say it all at once: each statement more would wait for the network once more.

        The mark is a separate statement, because one sees what was there when it began: this one
        begins when the lock is ours.
        """
        words = _BEGIN if fence is None else f"{_BEGIN}; {fence.mark}"
        with _driver(connection).cursor() as cursor:
            cursor.execute(words.encode())
            found = [row for each in cursor.results() if each.description for row in each]
        (_, self._transaction), *marked = found
        self._mark = (fence.count, marked[0][0]) if fence and marked else None
        return fence is None or bool(marked)

    def commit(self, connection: Connection, keep_asking: Callable[[], bool]) -> None:
        """Commit; if the answer is lost, find out whether it was done."""
        try:
            connection.exec_driver_sql("COMMIT")
        except DBAPIError as error:
            if not has_failed(error) or not self._was_committed(keep_asking):
                raise

    def _was_committed(self, keep_asking: Callable[[], bool]) -> bool:
        """Ask the server once the transaction has ended: until then it holds the lock."""
        while True:
            try:
                with self.engine.connect() as connection:
                    connection.exec_driver_sql("BEGIN")
                    connection.exec_driver_sql(_WAIT)
                    connection.exec_driver_sql(LOCK)
                    was_committed = self._has_come(connection)
                    connection.exec_driver_sql("ROLLBACK")
                    return was_committed
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", "") == UNKNOWN_TRANSACTION:
                    return False
                if not has_failed(error) or not keep_asking():
                    raise
            self._pause()

    def _has_come(self, connection: Connection) -> bool:
        """Look for the last commit; a server that crashed may have used its number again."""
        if self._mark is None:
            status = connection.exec_driver_sql(_STATUS, (self._transaction,)).scalar()
            return bool(status == "committed")
        query, number = self._mark
        return bool(connection.exec_driver_sql(query).scalar() == number)

    def connect(self) -> Connection:
        """Connect in order to write."""
        return self._insist(self.engine.connect, BEGIN_SECONDS)

    def read(self, function: Callable[[Connection], T]) -> T:
        """Run a function that reads; what a restart of the server cut off is read again."""

        def attempt() -> T:
            with self.engine.connect() as connection:
                return function(connection)

        return self._insist(attempt, self._away_seconds)

    def prepare_migration(self, connection: Connection) -> None:
        """Wait for a bridge that migrates, and for all commits."""
        connection.exec_driver_sql(_WAIT)
        connection.exec_driver_sql(LOCK)

    def compact(self, connection: Connection) -> None:
        """Rewrite the tables; the server's own log forgets by itself."""
        tables = ", ".join(f'"{name}"' for name in metadata.tables)
        small = measure(connection) <= COMPACTED_BYTES
        connection.exec_driver_sql(f"set lock_timeout = '{LOCK_SECONDS}s'")
        try:
            connection.exec_driver_sql(f"vacuum full {tables}" if small else f"vacuum {tables}")
        finally:
            connection.exec_driver_sql("reset lock_timeout")

    def check(self) -> None:
        """Check the server's version, and what we may do in the schema.

        Raises:
            StoreUnavailable: it cannot be used; the remedy is said.
        """
        self.read(check_server)

    def refuse(self, error: DatabaseError) -> NoReturn:
        """Say why the server cannot be used."""
        refuse_server(error)

    def _connect(self, dialect: Any, _record: object, words: Any, settings: Any) -> Any:
        """Connect, and note whether the server is away."""
        try:
            connection = dialect.connect(*words, **settings)
        except psycopg.OperationalError as error:
            if self._note(is_away=True):
                logger.warning("the database is away: %s", " ".join(str(error).split()))
                self.doubt()
            raise
        if not self._is_locked:
            self._note(is_away=False)
        return connection

    def _note(self, *, is_away: bool) -> bool:
        """Note whether the server is away; tell whether that is news."""
        with self._lock:
            is_news = self._is_away != is_away
            self._is_away = is_away
        if is_news:
            (self._back.clear if is_away else self._back.set)()
            self.outage.note(is_away=is_away)
        if is_news and not is_away:
            logger.warning("the database is back")
        return is_news

    def doubt(self) -> None:
        """Look for the server in a thread, until it is there."""
        with self._lock:
            if self._lookout is None and self._away_seconds and not self._closed.is_set():
                self._lookout = threading.Thread(target=self._look_out, name="store-lookout")
                self._lookout.daemon = True
                self._lookout.start()

    def _look_out(self) -> None:
        pause = 0.0
        while not self._closed.wait(pause):
            with suppress(DBAPIError), self.engine.connect() as connection:
                connection.exec_driver_sql(_TABLES if self._is_locked else "select 1")
                self._is_locked = False
                self._note(is_away=False)
                with self._lock:
                    if not self._is_away:
                        self._lookout = None
                        return
            pause = LOOK_SECONDS

    def close(self) -> None:
        """Close every connection."""
        self._closed.set()
        if (lookout := self._lookout) is not None:
            lookout.join(CONNECT_SECONDS)
        self.engine.dispose()

    def _insist(self, attempt: Callable[[], T], seconds: float) -> T:
        """Try until it succeeds, at most for so long, as long as the server is the cause."""
        if self._is_in_vain():
            cause = "database is locked" if self._is_locked else "the database is away"
            raise StoreUnavailable(cause)
        deadline = time.monotonic() + seconds
        while True:
            try:
                return attempt()
            except DBAPIError as error:
                is_blocking = is_locked(error) and _is_in_loop()
                if is_blocking:
                    self._wait_for_lock()
                is_late = time.monotonic() > deadline or self._is_in_vain()
                if is_late or not has_failed(error):
                    raise
                locked = error if is_blocking else None
            if (self._is_away or locked) and step_aside():
                deadline = time.monotonic() + seconds
            elif locked is not None:
                raise locked
            else:
                self._pause()

    def _wait_for_lock(self) -> None:
        """Take a server for away whose tables are locked: reads in the event loop stop it."""
        self._is_locked = True
        if self._note(is_away=True):
            logger.warning("a table of the database is locked by another session")
        self.doubt()

    def _is_in_vain(self) -> bool:
        """Tell whether the server is away for a caller that does not wait."""
        return self._is_away and (is_hurried() or self.outage.is_ignored)

    def _pause(self) -> None:
        """Give a server that is away some time; a lost connection alone is replaced at once."""
        if self._is_away:
            self._back.wait(LOOK_SECONDS)


def _is_in_loop() -> bool:
    """Tell whether an event loop waits for what this thread does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def name_driver(address: str) -> URL:
    """Return an address with the driver in use."""
    return make_url(address).set(drivername=DRIVER)


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    driver: psycopg.Connection[Any] = connection.connection.driver_connection  # type: ignore[assignment] # it is psycopg's
    return driver


def _options(address: URL, *, readonly: bool) -> str:
    given = address.query.get("options", "")
    bounds = {
        "default_transaction_read_only": "on" if readonly else "off",
        "lock_timeout": f"{READ_LOCK_MS}ms",
        "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
        "synchronous_commit": "on",
    }
    ours = " ".join(f"-c {name}={value}" for name, value in bounds.items())
    return f"{ours} {given if isinstance(given, str) else ' '.join(given)}".strip()


def _prepare(connection: psycopg.Connection[Any], _record: object) -> None:
    # Texts are of the type `text`, where the server would have to guess.
    connection.adapters.register_dumper(str, StrDumper)
