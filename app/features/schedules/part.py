"""Joins schedules in one bridge: the book of them, the loop that runs them."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import override

from app.core.hooks import Hook
from app.core.runtime import Runtime
from app.features.part import Part
from app.features.schedules.service import ScheduleBook, Scheduler
from app.features.schedules.store import ScheduleStore


class Schedules(Part):
    """The schedules of one bridge."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        store = runtime.stores.open(ScheduleStore)
        self._loop = Scheduler(
            store,
            runtime.clock,
            adapters=runtime.adapters,
            deliver=runtime.intake.wake,
            signals=runtime.signals,
        )
        self.book = ScheduleBook(
            store,
            zone=runtime.zone,
            clock=runtime.clock,
            outbox=runtime.outbox,
            feed=runtime.feed,
            names=runtime.agents.names,
            changed=self._loop.change,
        )

    @override
    def start(self) -> None:
        self.book.start()
        self._loop.start()

    @override
    async def close(self) -> None:
        await self._loop.close()
        await self.book.close()

    @override
    def hooks(self) -> Iterable[Hook]:
        return (self.book,)
