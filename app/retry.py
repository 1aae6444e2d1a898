"""Retries calls that fail for a passing reason, and holds tasks while the store is away.

Backoff goes over the `Clock` port. Requests are refused at once instead.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import repeat
from typing import Any, ParamSpec, TypeVar

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


class Outage:
    """Whether the store is away; told by any thread, waited for in event loops."""

    def __init__(self) -> None:
        self._is_on = False
        self.is_ignored = False
        """Whether the bridge ends: then nothing waits any more."""
        self._lock = threading.Lock()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def is_on(self) -> bool:
        """Whether tasks are held."""
        return self._is_on and not self.is_ignored

    def note(self, *, is_away: bool) -> None:
        """Note that the store is away, or back: those that wait go on in their order."""
        with self._lock:
            self._is_on = is_away
            if not is_away:
                self._release()

    def ignore(self) -> None:
        """Hold no task any more: the bridge ends."""
        with self._lock:
            self.is_ignored = True
            self._release()

    async def wait(self) -> None:
        """Wait until the store is there."""
        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if not self.is_on:
                    return
                future = loop.create_future()
                self._waiting.append(future)
            await future

    async def hold(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine; here nothing holds it."""
        return await work

    def _release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            with suppress(RuntimeError):  # its loop was closed
                future.get_loop().call_soon_threadsafe(_resolve, future)


_watched: ContextVar[Outage | None] = ContextVar("watched", default=None)
_is_hurried: ContextVar[bool] = ContextVar("hurried", default=False)


def watch(outage: Outage) -> None:
    """Have the tasks that are started from here on held while the store is away."""
    _watched.set(outage)


@contextmanager
def hurried() -> Iterator[None]:
    """Let nothing that is called here wait for a store that is away."""
    token = _is_hurried.set(True)
    try:
        yield
    finally:
        _is_hurried.reset(token)


def is_hurried() -> bool:
    """Tell whether the caller would rather fail than wait for a store that is away."""
    return _is_hurried.get()


def is_watched() -> bool:
    """Tell whether there is a store that can be away."""
    return _watched.get() is not None


async def hold(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that goes on only while the store is there."""
    outage = _watched.get()
    _is_hurried.set(False)
    return await (work if outage is None else outage.hold(work))


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
