"""The one writer: a thread that owns every write and commits all that wait together.

Nobody waits for ever: a unit that raises fails alone, and when the file itself cannot be written
(locked, full, read-only) everybody who waits is told at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import DatabaseError, OperationalError

from app.errors import StoreUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")
Write = Callable[[Connection], T]

MAX_WAITING = 20_000
"""Units that may wait before new ones are refused: far above a burst, far below trouble."""
MAX_BATCH = 1_000
"""Units of one commit: keeps a commit short enough that a small one behind it is not late."""
JOIN_SECONDS = 10.0
"""How long closing waits for the last commit: five times the busy timeout."""


@dataclass(slots=True)
class _Unit:
    """One write and the one who waits for it: either a function, or a statement with one row."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    function: Write[Any] | None = None
    statement: Executable | None = None
    row: Mapping[str, Any] | None = None
    result: Any = None
    error: BaseException | None = None
    settled: bool = False
    """Whether it was committed, or failed by its own fault: nothing later changes that."""


class Writer:
    """Runs writes one after another in a thread of its own, as few commits as possible."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: deque[_Unit] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._loop, name="store-writer", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def close(self) -> None:
        """Finish what waits, then end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    async def run(self, function: Write[T]) -> T:
        """Run a function of a connection and return its result once it is committed.

        Raises:
            StoreUnavailable: nothing was written.
        """
        loop = asyncio.get_running_loop()
        unit = _Unit(loop, loop.create_future(), function=function)
        self._put(unit)
        result: T = await unit.future
        return result

    async def insert(self, statement: Executable, row: Mapping[str, Any]) -> None:
        """Run a statement with one row; equal statements that wait together go as one.

        Raises:
            StoreUnavailable: nothing was written.
        """
        loop = asyncio.get_running_loop()
        unit = _Unit(loop, loop.create_future(), statement=statement, row=row)
        self._put(unit)
        await unit.future

    def _put(self, unit: _Unit) -> None:
        with self._wake:
            if self._closing:
                raise StoreUnavailable("the bridge is stopping")
            if len(self._waiting) >= MAX_WAITING:
                raise StoreUnavailable("too many writes are waiting")
            self._waiting.append(unit)
            first = len(self._waiting) == 1
        if first:
            # Later in this round of the loop, so that all who write in it share the commit.
            unit.loop.call_soon(self._rouse)

    def _rouse(self) -> None:
        with self._wake:
            self._wake.notify()

    def _loop(self) -> None:
        connection: Connection | None = None
        while True:
            with self._wake:
                while not self._waiting and not self._closing:
                    self._wake.wait()
                if not self._waiting:
                    break
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH))]
            try:
                connection = connection or self._connect()
                self._commit(connection, batch)
            except Exception as error:  # noqa: BLE001 - the outermost loop: everybody who waits is told
                cause = _cause(error)
                logger.warning("a commit failed for %d writes: %s", len(batch), cause)
                for unit in batch:
                    if not unit.settled:
                        unit.error = StoreUnavailable(cause)
                _discard(connection)
                connection = None
            _tell(batch)
        if connection is not None:
            connection.close()

    def _connect(self) -> Connection:
        return self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def _commit(self, connection: Connection, batch: list[_Unit]) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            _execute(connection, batch)
            connection.exec_driver_sql("COMMIT")
            for unit in batch:
                unit.settled = True
        except Exception as error:
            _roll_back(connection)
            if _file_failed(error):
                raise
            if len(batch) == 1:
                batch[0].error = error
                batch[0].settled = True
                return
            for unit in batch:
                self._commit(connection, [unit])


def _execute(connection: Connection, batch: list[_Unit]) -> None:
    """Run all units in order; neighbours with one statement become one executemany."""
    index = 0
    while index < len(batch):
        unit = batch[index]
        index += 1
        if unit.function is not None:
            unit.result = unit.function(connection)
            continue
        rows = [unit.row]
        while index < len(batch) and batch[index].statement is unit.statement:
            rows.append(batch[index].row)
            index += 1
        assert unit.statement is not None
        connection.execute(unit.statement, rows)  # type: ignore[arg-type]  # rows are never None here


def _roll_back(connection: Connection) -> None:
    # On a full disk SQLite has rolled back by itself, and says so as an error.
    with suppress(OperationalError):
        connection.exec_driver_sql("ROLLBACK")


def _file_failed(error: Exception) -> bool:
    """Whether the file, not the unit, is at fault: locked, full, read-only, damaged."""
    if isinstance(error, OperationalError):
        return True
    return isinstance(error, DatabaseError) and "malformed" in str(error.orig)


def _cause(error: Exception) -> str:
    """Say why in a few words; SQLAlchemy's own message would print the statement and its values."""
    original = getattr(error, "orig", None)
    return str(original if original is not None else error) or type(error).__name__


def _discard(connection: Connection | None) -> None:
    if connection is not None:
        connection.invalidate()
        connection.close()


def _tell(batch: list[_Unit]) -> None:
    """Wake everybody who waits, with one call per event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Unit]] = {}
    for unit in batch:
        loops.setdefault(unit.loop, []).append(unit)
    for loop, units in loops.items():
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, units)


def _resolve(units: list[_Unit]) -> None:
    for unit in units:
        if unit.future.done():
            continue
        if unit.error is not None:
            unit.future.set_exception(unit.error)
        else:
            unit.future.set_result(unit.result)
