"""Tells the time; tests replace the clock to skip hours."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Time, so that a test can skip hours."""

    def now(self) -> float:
        """Tell the wall clock, in seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Tell a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """Tells the time of this machine."""

    def now(self) -> float:
        """Tell the wall clock, in seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Tell a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
