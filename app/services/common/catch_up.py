"""Catches up on deliveries that were missed while the bridge or a platform was down.

A service finds what it may have missed; this module bounds how far back it looks and hands the
deliveries over. The intake recognises the ones that did arrive by their ids.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from app.clock import Clock
from app.model.inbound import Delivery
from app.retry import persist

logger = logging.getLogger(__name__)

Take = Callable[[Delivery], Awaitable[None]]
Find = Callable[[float], AsyncGenerator[Delivery, None]]


class CatchUp:
    """Hands over the deliveries that one adapter missed, run after run."""

    def __init__(self, adapter: str, clock: Clock, *, reach: float, overlap: float) -> None:
        """Look back `reach` seconds at most, and `overlap` seconds behind the previous run."""
        self._adapter = adapter
        self._clock = clock
        self._reach = reach
        self._overlap = overlap
        self._last = float("-inf")

    async def run(self, find: Find, take: Take, *, last: float | None = None) -> None:
        """Hand over what is found since the previous run, or since `last` if the caller knows.

        A run that fails counts as none: the next one looks as far back.
        """
        began = self._clock.now()
        since = max(began - self._reach, (self._last if last is None else last) - self._overlap)
        count = 0
        async with aclosing(find(since)) as found:
            async for delivery in found:
                await persist(self._clock, take, delivery)
                count += 1
        self._last = began
        if count:
            logger.info("%s caught up: %d deliveries", self._adapter, count)
