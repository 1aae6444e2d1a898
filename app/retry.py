"""Retries calls that fail for a passing reason, with backoff over the `Clock` port."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import ParamSpec, TypeVar

from app.clock import Clock
from app.errors import PostDelayed, StoreUnavailable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

STORE_RETRY_SECONDS = 1.0
"""Pause between two attempts to write: a lock is gone in moments, a full disk is not."""


async def retry(
    clock: Clock,
    call: Callable[[], Awaitable[T]],
    pauses: Iterable[float],
    *,
    on: type[Exception] | tuple[type[Exception], ...] = PostDelayed,
    longest: float = float("inf"),
) -> T:
    """Call until it succeeds, and let the last error out when there is no pause left.

    A platform's own `retry_after` replaces the pause; one above `longest` ends the retries.
    """
    left = iter(pauses)
    while True:
        try:
            return await call()
        except on as error:
            pause = next(left, None)
            if pause is None:
                raise
            pause = (error.retry_after if isinstance(error, PostDelayed) else None) or pause
            if pause > longest:
                raise
            logger.warning("retry in %g s: %s", pause, str(error) or type(error).__name__)
        await clock.sleep(pause)


def backoff(first: float, longest: float) -> Iterator[float]:
    """Yield pauses that double up to a limit, without end."""
    while True:
        yield first
        first = min(2 * first, longest)


async def persist(
    clock: Clock, write: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Write something that must not be lost, however long the store is unavailable."""
    call = partial(write, *args, **kwargs)
    return await retry(clock, call, repeat(STORE_RETRY_SECONDS), on=StoreUnavailable)
