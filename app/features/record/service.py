"""Records what happens soon after it did, and shows the record as it is now.

Any member may add rows: what is recorded, and how far that has come, is one commit. The leader does
it in the background, and whoever reads the record does it first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

from typing_extensions import override

from app.core.runtime import Runtime
from app.features.part import Part
from app.features.record.store import RecordFilter, RecordStore
from app.model.record import RecordRow, write_header, write_row
from app.retry import persist
from app.tasks import Tasks

SETTLE_SECONDS = 1.0
"""How long news is collected before it is recorded: one commit for many rows."""
SWEEP_SECONDS = 30.0
"""The longest pause: a post that has arrived is no news."""
AGAIN_SECONDS = 60.0
"""Pause after a failure that has no name."""

logger = logging.getLogger(__name__)


class Record(Part):
    """The record of one installation."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._store = runtime.stores.open(RecordStore)
        self._clock = runtime.clock
        self._tasks = Tasks("record")
        self._news = asyncio.Event()
        runtime.feed.listeners.append(lambda _session: self._news.set())
        runtime.signals.on_sweep(self._news.set)

    @override
    async def recover(self) -> None:
        """Begin the record of a new database before any turn goes on."""
        await self.catch_up()

    @override
    def start(self) -> None:
        """Record what happens from now on."""
        self._tasks.start(self._work(), name="follow")

    @override
    async def close(self) -> None:
        """Stop; what is left is recorded at the next start."""
        await self._tasks.close()

    async def catch_up(self) -> None:
        """Record all that has happened so far."""
        if await self._store.is_behind():
            while await persist(self._clock, self._store.follow):
                pass

    async def find(
        self, wanted: RecordFilter, *, before: int | None = None, limit: int
    ) -> Sequence[RecordRow]:
        """List rows, newest first."""
        await self.catch_up()
        return await self._store.find(wanted, before=before, limit=limit)

    async def head(self) -> tuple[int, str]:
        """Return the number of the last row and its hash."""
        await self.catch_up()
        return await self._store.head()

    async def export(self) -> AsyncIterator[str]:
        """Write the whole record, line by line."""
        number, head = await self.head()
        yield f"{write_header(number, head)}\n"
        written = 0
        # What is erased meanwhile is named by a row that comes meanwhile.
        while written < number:
            async for row in self._store.export(written, number):
                yield f"{write_row(row)}\n"
            written, (number, _) = number, await self._store.head()

    async def _work(self) -> None:
        while True:
            self._news.clear()
            try:
                await self.catch_up()
                await self._rest()
            except Exception:
                logger.exception("what happened cannot be recorded")
                await self._clock.sleep(AGAIN_SECONDS)

    async def _rest(self) -> None:
        """Wait for news, and for a moment more so that they come together."""
        alarm = self._tasks.start(self._ring(), name="sweep")
        try:
            await self._news.wait()
        finally:
            alarm.cancel()
        await self._clock.sleep(SETTLE_SECONDS)

    async def _ring(self) -> None:
        await self._clock.sleep(SWEEP_SECONDS)
        self._news.set()
