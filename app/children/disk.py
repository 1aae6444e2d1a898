"""Checks the free space on DATA_DIR's disk, and keeps a reserve for the store.

Code that writes a lot checks first. If the disk fills up anyway, the reserve is released so that
the store can still write what people must be told.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.errors import DiskNearlyFull

logger = logging.getLogger(__name__)

WATERMARK_BYTES: Final = 1024**3
"""What stays free: enough for the store and for running agents."""
RESERVE_BYTES: Final = 64 * 1024**2
"""Some thousand messages, and the store's journal."""
RESERVE: Final = "reserve"
"""The name of the file that holds it."""
_WATERMARK_SHARE: Final = 10
_RESERVE_SHARE: Final = 20
"""On a small disk: at most this part of it."""


def identify(folder: Path) -> str:
    """Return the name that marks a folder's disk, and changes with it; it is made if necessary.

    Raises:
        OSError: it cannot be read or written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = folder / ".machine"
    if not mark.exists():
        name = uuid4().hex
        new = folder / f".machine.{name}"
        new.write_text(name)
        with contextlib.suppress(
            FileExistsError
        ):  # another machine that shares the folder was first
            mark.hardlink_to(new)
        new.unlink()
    return mark.read_text()


class DiskSpace:
    """The file system that holds a folder."""

    def __init__(self, folder: Path, *, watermark: int | None = None) -> None:
        self._folder = folder
        self._reserve = folder / RESERVE
        self._watermark = watermark

    def free(self) -> int:
        """Return how many bytes are free; blocks for some microseconds."""
        return shutil.disk_usage(self._place()).free

    def watermark(self) -> int:
        """Return how many bytes must stay free."""
        if self._watermark is not None:
            return self._watermark
        return min(WATERMARK_BYTES, shutil.disk_usage(self._place()).total // _WATERMARK_SHARE)

    async def check_room(self, more: int = 0) -> None:
        """Check that there is room for this many more bytes.

        Raises:
            DiskNearlyFull: there is not.
        """
        free, watermark = await asyncio.to_thread(lambda: (self.free(), self.watermark()))
        if free - more < watermark:
            raise DiskNearlyFull(free, watermark)

    def keep_reserve(self) -> None:
        """Create the reserve when there is room, release it when the disk is full; blocking."""
        usage = shutil.disk_usage(self._place())
        size = min(RESERVE_BYTES, usage.total // _RESERVE_SHARE)
        if self._reserve.exists():
            if usage.free < size // 2:
                logger.warning("disk full: released the store's reserve of %d bytes", size)
                self._reserve.unlink(missing_ok=True)
        elif usage.free > self.watermark() + size:
            self._take_reserve(size)

    def _take_reserve(self, size: int) -> None:
        with contextlib.suppress(OSError):  # the bridge also works without a reserve
            with self._reserve.open("wb") as file:
                self._reserve.chmod(0o600)
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:  # macOS
                    file.write(bytes(size))
            return
        self._reserve.unlink(missing_ok=True)

    def _place(self) -> Path:
        return next(each for each in (self._folder, *self._folder.parents) if each.exists())
