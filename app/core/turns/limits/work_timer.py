"""Measures how long a turn has worked, and how long it only waits for people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from app.clock import Clock


class WorkTimer:
    """Measures the time of one turn."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asks = 0
        self._others = 0
        self._paused = 0.0
        self._waited = 0.0
        self._active = 0.0
        self._at_work = asyncio.Event()
        self._at_work.set()
        self._asking = asyncio.Event()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Count the time in which at least one ask is open."""
        self._pause()
        self._asks += 1
        self._active = self._clock.monotonic()
        self._asking.set()
        try:
            yield
        finally:
            self._asks -= 1
            self._active = self._clock.monotonic()
            if not self._asks:
                self._asking.clear()
            self._resume()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Leave out the time in which the turn waits for other agents."""
        self._pause()
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1
            self._active = self._clock.monotonic()
            self._resume()

    def _pause(self) -> None:
        if not self._asks + self._others:
            self._paused = self._clock.monotonic()
            self._at_work.clear()

    def _resume(self) -> None:
        if not self._asks + self._others:
            self._waited += self._clock.monotonic() - self._paused
            self._at_work.set()

    @property
    def is_asking(self) -> bool:
        """Whether at least one ask is open."""
        return self._asks > 0

    def stir(self) -> None:
        """Note that the agent is active although an ask is open."""
        if self._asks:
            self._active = self._clock.monotonic()

    async def wait_until_worked(self, seconds: float) -> None:
        """Wait until the agent has worked this long; the time people take to answer is left out."""
        clock = self._clock
        began = clock.monotonic()
        while (left := seconds + self._waited - (clock.monotonic() - began)) > 0:
            await clock.sleep(left)
            await self._at_work.wait()

    async def wait_until_idle(self, seconds: float) -> None:
        """Wait until an ask has been open this long and nothing else has happened."""
        while True:
            await self._asking.wait()
            idle = 0.0 if self._others else self._clock.monotonic() - self._active
            left = seconds - idle
            if left <= 0:
                return
            await self._clock.sleep(left)
