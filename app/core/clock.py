"""System clock: implements the `Clock` port with this machine's time."""

from __future__ import annotations

import asyncio
import time


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
