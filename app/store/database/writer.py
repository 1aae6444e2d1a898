"""Runs all writes in one thread and commits those that wait together.

No caller waits for ever: a unit that raises fails alone, and if the file itself cannot be written
(locked, full, read-only) all waiting units fail at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Insert
from sqlalchemy.exc import DBAPIError, PendingRollbackError

from app.errors import StoreUnavailable
from app.store.database.backend import Backend, Fence, describe_cause, has_failed

logger = logging.getLogger(__name__)

T = TypeVar("T")
Write = Callable[[Connection], T]

MAX_WAITING = 20_000
"""Units that may wait before new ones are refused: far above any burst, far below the memory."""
MAX_BATCH = 1_000
"""Units per commit: keeps it short enough not to delay a small one behind it."""
JOIN_SECONDS = 10.0
"""How long closing waits for the last commit: five times the busy timeout."""


@dataclass(slots=True)
class _Unit:
    """One write and the future of its caller: either a function, or a statement with one row."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    function: Write[Any] | None = None
    statement: Insert | None = None
    row: Mapping[str, Any] | None = None
    alone: bool = False
    """Whether it runs outside of any transaction."""
    result: Any = None
    error: BaseException | None = None
    settled: bool = False
    """Whether it was committed, or failed by itself: nothing later changes that."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An insert as the driver takes it: compiling and binding per row would double its time."""

    text: str
    columns: tuple[tuple[str, Callable[[Any], Any] | None], ...]
    """The name of each value, in the order of the text, and what turns it into a driver's value."""

    named: bool
    """Whether the driver takes values by name, not by position."""

    @classmethod
    def of(cls, statement: Insert, names: Iterable[str], dialect: Dialect) -> _Prepared:
        compiled = statement.compile(dialect=dialect, column_keys=list(names))
        positions = compiled.positiontup
        kinds = [(name, compiled.binds[name].type) for name in positions or compiled.binds]
        return cls(
            str(compiled),
            tuple(
                (name, kind.dialect_impl(dialect).bind_processor(dialect)) for name, kind in kinds
            ),
            positions is None,
        )

    def values(self, row: Mapping[str, Any]) -> Any:
        values = [row[name] if bind is None else bind(row[name]) for name, bind in self.columns]
        if self.named:
            return dict(zip((name for name, _ in self.columns), values, strict=True))
        return tuple(values)


class Writer:
    """Runs writes one after another in its own thread, in as few commits as possible."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._waiting: deque[_Unit] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._prepared: dict[Insert, _Prepared] = {}
        self.on_commit: Callable[[float], None] = lambda _seconds: None
        """Is told how long each commit took, in the writer's thread."""
        self.fence: Fence | None = None
        """Is asked at the beginning of each commit whether this process may still write."""
        self._thread = threading.Thread(target=self._loop, name="store-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Finish waiting units, then stop the thread."""
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
        result: T = await self._put(function=function)
        return result

    async def insert(self, statement: Insert, row: Mapping[str, Any]) -> None:
        """Insert one row; those of one statement that wait together are inserted together.

        Raises:
            StoreUnavailable: nothing was written.
        """
        await self._put(statement=statement, row=row)

    async def alone(self, function: Write[T]) -> T:
        """Run a function of a connection outside of any transaction, between two commits.

        Raises:
            StoreUnavailable: it failed.
        """
        result: T = await self._put(function=function, alone=True)
        return result

    def _put(self, **work: Any) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        unit = _Unit(loop, loop.create_future(), **work)
        with self._wake:
            if self._closing:
                raise StoreUnavailable("the bridge is stopping")
            if len(self._waiting) >= MAX_WAITING:
                raise StoreUnavailable("too many writes are waiting")
            self._waiting.append(unit)
            first = len(self._waiting) == 1
        if first:
            # Later in this round of the event loop, so that all its writes share the commit.
            loop.call_soon(self._rouse)
        return unit.future

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
                batch = self._next_batch()
            try:
                connection = connection or self._connect()
                began = time.monotonic()
                self._commit(connection, batch)
                self.on_commit(time.monotonic() - began)
            except Exception as error:  # noqa: BLE001 - the outermost loop: all waiting units fail
                cause = describe_cause(error)
                logger.warning("commit failed for %d writes: %s", len(batch), cause)
                for unit in batch:
                    if not unit.settled:
                        unit.error = StoreUnavailable(cause)
                _discard(connection)
                connection = None
            _tell(batch)
        if connection is not None:
            connection.close()

    def _next_batch(self) -> list[_Unit]:
        """Take what is committed together; what runs alone is a batch of its own."""
        batch = [self._waiting.popleft()]
        while self._waiting and len(batch) < MAX_BATCH:
            if batch[0].alone or self._waiting[0].alone:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _refuse_waiting(self) -> bool:
        """Fail what waits behind a commit whose end is not known; False once that is of no use."""
        with self._wake:
            waiting, self._waiting = self._waiting, deque()
        for unit in waiting:
            unit.error = StoreUnavailable("the database is away")
        _tell(list(waiting))
        return not self._closing

    def _connect(self) -> Connection:
        return self._backend.connect().execution_options(isolation_level="AUTOCOMMIT")

    def _commit(self, connection: Connection, batch: list[_Unit]) -> None:
        first = batch[0]
        if first.alone and first.function is not None:
            first.result = first.function(connection)
            first.settled = True
            return
        is_member = self._backend.begin(connection, self.fence)
        try:
            if self.fence is not None and not is_member:
                self.fence.refuse()
            self._execute(connection, batch)
            self._backend.commit(connection, self._refuse_waiting)
            for unit in batch:
                unit.settled = True
        except Exception as error:
            _roll_back(connection)
            if has_failed(error):
                raise
            if len(batch) == 1:
                batch[0].error = error
                batch[0].settled = True
                return
            for unit in batch:
                self._commit(connection, [unit])

    def _execute(self, connection: Connection, batch: list[_Unit]) -> None:
        """Run all units in order; neighbours with one statement become one executemany."""
        for statement, group in groupby(batch, key=attrgetter("statement")):
            if statement is None:
                for unit in group:
                    assert unit.function is not None
                    unit.result = unit.function(connection)
            else:
                self._insert(connection, statement, [unit.row for unit in group if unit.row])

    def _insert(
        self, connection: Connection, statement: Insert, rows: list[Mapping[str, Any]]
    ) -> None:
        prepared = self._prepared.get(statement)
        if prepared is None:
            prepared = _Prepared.of(statement, rows[0], connection.dialect)
            self._prepared[statement] = prepared
        connection.exec_driver_sql(prepared.text, [prepared.values(row) for row in rows])


def _roll_back(connection: Connection) -> None:
    # On a full disk SQLite has already rolled back, and reports that as an error; a server may be
    # gone, and ends the transaction by itself.
    with suppress(DBAPIError, PendingRollbackError):
        connection.exec_driver_sql("ROLLBACK")


def _discard(connection: Connection | None) -> None:
    if connection is not None:
        connection.invalidate()
        connection.close()


def _tell(batch: list[_Unit]) -> None:
    """Wake all waiting callers, with one call per event loop."""
    loops: dict[asyncio.AbstractEventLoop, list[_Unit]] = {}
    for unit in batch:
        loops.setdefault(unit.loop, []).append(unit)
    for loop, units in loops.items():
        with suppress(RuntimeError):  # the loop was closed: no one waits any more
            loop.call_soon_threadsafe(_resolve, units)


def _resolve(units: list[_Unit]) -> None:
    for unit in units:
        if unit.future.done():
            continue
        if unit.error is not None:
            unit.future.set_exception(unit.error)
        else:
            unit.future.set_result(unit.result)
