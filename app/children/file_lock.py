"""Excludes other threads and the bridges of other machines by a lock on a file.

The kernel frees it when its process ends, also on a network file system.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

_POLL_SECONDS: Final = 0.05
"""A network file system has no fair queue of waiters, and may lose the one it has."""
SHORT_SECONDS: Final = 60.0
"""How long to wait for others that write some small files."""


class FileLock:
    """A lock for short work on files, to be used in threads; its holder may take it again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._here = threading.RLock()
        self._depth = 0
        self._handle = -1

    def __enter__(self) -> None:
        self._here.acquire()
        try:
            if not self._depth:
                self._handle = _open(self._file)
                _wait(self._handle, self._file)
            self._depth += 1
        except BaseException:
            self._let_go()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        self._let_go()

    def _let_go(self) -> None:
        if not self._depth and self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        self._here.release()


@asynccontextmanager
async def hold(file: Path, seconds: float) -> AsyncIterator[None]:
    """Hold a lock for long work; others on the event loop go on.

    Raises:
        TimeoutError: another bridge holds it for longer than this.
        OSError: the file cannot be locked.
    """
    handle = await asyncio.to_thread(_open, file)
    try:
        async with asyncio.timeout(seconds):
            while not await asyncio.to_thread(_try, handle):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _open(file: Path) -> int:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(handle: int, file: Path) -> None:
    end = time.monotonic() + SHORT_SECONDS
    while not _try(handle):
        if time.monotonic() > end:
            raise TimeoutError(f"another bridge holds {file.name}")
        time.sleep(_POLL_SECONDS)
