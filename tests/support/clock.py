"""Clocks for tests: moved by a test, in or from outside of its process; never sleeping; faster."""

from __future__ import annotations

import asyncio
import heapq
from datetime import datetime
from itertools import count
from pathlib import Path

from app.clock import SystemClock

START = 1_800_000_000.0


class ManualClock:
    """The clock port, standing still until `advance`."""

    def __init__(self) -> None:
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._changed = asyncio.Event()

    def now(self) -> float:
        return START + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        self._changed.set()
        await future

    @property
    def sleepers(self) -> int:
        """How many sleep."""
        return sum(not future.done() for *_, future in self._sleepers)

    async def asleep(self, sleepers: int = 1) -> None:
        """Wait until so many sleep."""
        async with asyncio.timeout(5):
            while self.sleepers < sleepers:
                self._changed.clear()
                await self._changed.wait()

    def jump(self, seconds: float) -> None:
        """Let time pass while this process does nothing."""
        self._elapsed += seconds

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking whoever is due, in order."""
        until = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            due, _, future = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, due)
            if not future.done():
                future.set_result(None)
            for _ in range(20):  # lets whoever woke run until it waits again
                await asyncio.sleep(0)
        self._elapsed = until


class HastyClock(SystemClock):
    """The real time, in which nobody sleeps; notes how long somebody would have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class FastClock(SystemClock):
    """A clock with shorter seconds; its time of day is real, since signatures depend on it."""

    def __init__(self, speed: float) -> None:
        self._speed = speed

    def monotonic(self) -> float:
        return super().monotonic() * self._speed

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / self._speed)


class DrivenClock(FastClock):
    """A fast clock whose time of day is what a file says, in another process."""

    def __init__(self, speed: float, file: Path) -> None:
        super().__init__(speed)
        self._file = file

    def now(self) -> float:
        return datetime.fromisoformat(self._file.read_text()).timestamp()
