"""The real clock, and patience with a store that cannot write for a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from app.core.ports import Clock
from app.errors import StoreUnavailable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

STORE_RETRY_SECONDS = 1.0
"""Between two attempts to write: a lock is gone in moments, a full disk is not."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """Tell the wall clock, in seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Tell a clock that never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


async def persist(
    clock: Clock, write: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Write something that must not be lost, however long the store is unavailable."""
    while True:
        try:
            return await write(*args, **kwargs)
        except StoreUnavailable as error:
            logger.warning("waiting for the store: %s", error.cause)
        await clock.sleep(STORE_RETRY_SECONDS)
