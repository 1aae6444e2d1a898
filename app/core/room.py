"""Keeps room on the disk of DATA_DIR: warns in time, and removes what can be made again first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from app.children.disk import DiskSpace
from app.clock import Clock
from app.errors import DiskNearlyFull
from app.model import wording

logger = logging.getLogger(__name__)

WATCH_SECONDS = 60.0
"""Between two looks at the disk."""
IDLE_SECONDS = 3600.0
"""How long a session must be unused before its clone is removed to make room."""
WARNING = 2
"""People are warned below so many times of what must stay free, unless a setting says otherwise."""


class Room:
    """The room on one disk."""

    def __init__(
        self,
        disk: DiskSpace,
        clock: Clock,
        shed: Callable[[float], Awaitable[int]],
        *,
        warn_bytes: int | None = None,
    ) -> None:
        """Watch a disk; `shed` removes clones unused since a time that can be made again."""
        self._disk = disk
        self._clock = clock
        self._shed = shed
        self._warn_bytes = warn_bytes
        self._shedding = asyncio.Lock()
        self._looked_at = -WATCH_SECONDS
        self.trouble = ""
        """What is wrong with the disk, for people; empty if nothing is."""

    async def check(self) -> None:
        """Check that a turn may begin; if there is too little room, make some.

        Raises:
            DiskNearlyFull: that did not help.
        """
        try:
            await self._disk.check_room()
        except DiskNearlyFull:
            await self._make_room()
            await self._disk.check_room()

    async def watch(self) -> None:
        """Look at the disk now and then, for as long as the bridge runs."""
        while True:
            try:
                await self._look()
            except Exception:
                logger.exception("cannot look after the disk")
            await self._clock.sleep(WATCH_SECONDS)

    async def _look(self) -> None:
        free, least, warn = await asyncio.to_thread(self._measure)
        if free < warn:
            await self._make_room()
            free, least, warn = await asyncio.to_thread(self._measure)
        words = (
            wording.DISK_LOW.format(free=free // 2**20, least=least // 2**20) if free < warn else ""
        )
        if bool(words) != bool(self.trouble):
            logger.warning("%s", words or "the disk has room again")
        self.trouble = words

    def _measure(self) -> tuple[int, int, int]:
        least = self._disk.watermark()
        warn = WARNING * least if self._warn_bytes is None else max(self._warn_bytes, least)
        return self._disk.free(), least, warn

    async def _make_room(self) -> None:
        """Remove clones that can be made again, at most once a minute."""
        async with self._shedding:
            if self._clock.monotonic() < self._looked_at + WATCH_SECONDS:
                return
            self._looked_at = self._clock.monotonic()
            gone = await self._shed(self._clock.now() - IDLE_SECONDS)
            if gone:
                logger.warning("removed %d unused clones to make room", gone)
