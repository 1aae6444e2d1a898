"""Holds tasks where they are while the store is away; requests are refused at once instead."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


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
