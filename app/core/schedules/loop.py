"""Waits for the due times of schedules and makes a delivery of each run.

A run and the next due time are one commit, so a crash neither loses nor repeats one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container

from app.clock import Clock
from app.core.schedules.runs import run_name, to_delivery
from app.core.schedules.timing import find_due
from app.core.schedules.types import Timetable
from app.errors import Conflict
from app.model.schedules import PauseReason, Schedule
from app.retry import persist
from app.signals import ALONE, Signals, Topic
from app.store.schedules import ScheduleStore
from app.tasks import Tasks

logger = logging.getLogger(__name__)

LONGEST_SECONDS = 60.0
"""The longest sleep: a machine that was suspended, or whose clock was set, is soon on time."""
AGAIN_SECONDS = 60.0
"""Pause after a failure that has no name."""


class Scheduler:
    """Runs schedules when they are due."""

    def __init__(
        self,
        store: ScheduleStore,
        timetable: Timetable,
        clock: Clock,
        *,
        adapters: Container[str],
        deliver: Callable[[str], None],
        signals: Signals = ALONE,
    ) -> None:
        """Run schedules of these adapters; `deliver` is told the adapter that has a delivery."""
        self._store = store
        self._timetable = timetable
        self._clock = clock
        self._adapters = adapters
        self._deliver = deliver
        self._wake = asyncio.Event()
        self._tasks = Tasks("schedules")
        self._signals = signals
        signals.on(Topic.SCHEDULES, lambda _facts: self._wake.set())
        signals.on_sweep(self._wake.set)

    def start(self) -> None:
        """Begin to wait for due times; what was due meanwhile runs at once."""
        self._tasks.start(self._work(), name="due times")

    def change(self, adapter: str) -> None:
        """Look at the due times again, and at the deliveries of an adapter."""
        self._wake.set()
        self._signals.send(Topic.SCHEDULES)
        self._deliver(adapter)

    async def close(self) -> None:
        """Run nothing more; what is due then runs at the next start."""
        await self._tasks.close()

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                for schedule in self._store.due(self._clock.now()):
                    await self._begin(schedule)
                await self._rest()
            except Exception:
                logger.exception("schedules cannot be run")
                await self._clock.sleep(AGAIN_SECONDS)

    async def _begin(self, schedule: Schedule) -> None:
        """Make the run that is due; one that can never run again is paused."""
        adapter, now = schedule.key.adapter, self._clock.now()
        if adapter not in self._adapters:
            await persist(self._clock, self._store.pause, schedule.id, PauseReason.ABSENT)
            return
        try:
            due = find_due(self._timetable, schedule, now)
        except Conflict as error:
            logger.warning("schedule %d is paused: %s", schedule.id, error)
            await persist(self._clock, self._store.pause, schedule.id, PauseReason.NO_TIMES)
            return
        name = run_name(schedule.id, due.at)
        delivery = to_delivery(schedule, name, missed=due.missed, now=now)
        if await persist(self._clock, self._store.begin, schedule, due.next_at, delivery):
            self._deliver(adapter)

    async def _rest(self) -> None:
        """Wait for the next due time, or until something changes."""
        due = self._store.next_due()
        if due is None:
            await self._wake.wait()
            return
        seconds = min(max(due - self._clock.now(), 0.0), LONGEST_SECONDS)
        alarm = self._tasks.start(self._ring(seconds), name="alarm")
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()

    async def _ring(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._wake.set()
