"""Retries calls that fail for a passing reason, with backoff over the `Clock` port."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import repeat
from typing import ParamSpec, TypeVar

from app.clock import Clock
from app.errors import PostDelayed, StoreUnavailable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

STORE_RETRY_SECONDS = 1.0
"""Pause between two attempts to write: a lock is gone in moments, a full disk is not."""


class Retries:
    """The pauses between attempts at one call; the attempts stay with the caller.

    A platform's own `retry_after` replaces a pause; one above `longest` ends the retries.
    """

    def __init__(
        self, clock: Clock, pauses: Iterable[float], *, longest: float = float("inf")
    ) -> None:
        self._clock = clock
        self._left = iter(pauses)
        self._longest = longest

    async def wait(self, error: Exception) -> None:
        """Wait until the next attempt; raises the error when there is no pause left."""
        pause = next(self._left, None)
        if pause is None:
            raise error
        pause = (error.retry_after if isinstance(error, PostDelayed) else None) or pause
        if pause > self._longest:
            raise error
        logger.warning("retry in %g s: %s", pause, str(error) or type(error).__name__)
        await self._clock.sleep(pause)


def backoff(first: float, longest: float) -> Iterator[float]:
    """Yield pauses that double up to a limit, without end."""
    while True:
        yield first
        first = min(2 * first, longest)


async def persist(
    clock: Clock, write: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Write something that must not be lost, however long the store is unavailable."""
    retries = Retries(clock, repeat(STORE_RETRY_SECONDS))
    while True:
        try:
            return await write(*args, **kwargs)
        except StoreUnavailable as error:
            await retries.wait(error)
