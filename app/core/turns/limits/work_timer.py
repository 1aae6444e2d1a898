"""Measures how long a turn has worked, and how long it only waits for people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.ports import Clock


class WorkTimer:
    """Measures the time of one turn."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asks = 0
        self._asked = 0.0
        self._waited = 0.0
        self._active = 0.0
        self._at_work = asyncio.Event()
        self._at_work.set()
        self._asking = asyncio.Event()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Count the time in which at least one ask is open."""
        self._active = self._clock.monotonic()
        if not self._asks:
            self._asked = self._active
            self._at_work.clear()
            self._asking.set()
        self._asks += 1
        try:
            yield
        finally:
            self._asks -= 1
            self._active = self._clock.monotonic()
            if not self._asks:
                self._waited += self._active - self._asked
                self._asking.clear()
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
            left = seconds - (self._clock.monotonic() - self._active)
            if left <= 0:
                return
            await self._clock.sleep(left)
