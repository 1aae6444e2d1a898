"""Holds a folder that only one turn at a time may work in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager


class Hold:
    """One turn's hold on its folder; without a lock there is nothing to hold."""

    def __init__(self, lock: asyncio.Lock | None = None) -> None:
        self._lock = lock
        self._held = False

    async def take(
        self, meanwhile: Callable[[], AbstractAsyncContextManager[None]] | None = None
    ) -> None:
        """Wait for the folder; `meanwhile` releases what its holder may need during the wait."""
        if self._lock is None or self._held:
            return
        if self._lock.locked() and meanwhile is not None:
            async with meanwhile():
                await self._acquire(self._lock)
        else:
            await self._acquire(self._lock)

    def leave(self) -> None:
        """Give the folder back, if it is held."""
        if self._lock is not None and self._held:
            self._held = False
            self._lock.release()

    async def _acquire(self, lock: asyncio.Lock) -> None:
        await lock.acquire()
        self._held = True
