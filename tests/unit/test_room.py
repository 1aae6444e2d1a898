"""Room on the disk: made first, then people are warned, then turns wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.children.limits import DiskSpace
from app.core.repositories.folders import IDLE_SECONDS, WATCH_SECONDS, DiskRoom
from app.errors import DiskNearlyFull
from app.tasks import Tasks
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


class Disk(DiskSpace):
    """A disk of which a test says how much is free."""

    def __init__(self, free: int) -> None:
        super().__init__(Path("/"), watermark=100)
        self.left = free

    def free(self) -> int:
        return self.left


class Clones:
    """Clones that take some room."""

    def __init__(self, disk: Disk, size: int) -> None:
        self._disk = disk
        self._size = size
        self.unused_since: list[float] = []

    async def shed(self, before: float) -> int:
        self.unused_since.append(before)
        self._disk.left += self._size
        return 1


async def test_room_is_made_before_a_turn_is_refused() -> None:
    clock, disk = ManualClock(), Disk(60)
    clones = Clones(disk, 50)
    room = DiskRoom(disk, clock, clones.shed)

    await room.check()
    disk.left = 10
    with pytest.raises(DiskNearlyFull):
        await room.check()  # it was tried just before
    await clock.advance(WATCH_SECONDS)
    disk.left = 10
    with pytest.raises(DiskNearlyFull):
        await room.check()

    assert clones.unused_since == [
        clock.now() - WATCH_SECONDS - IDLE_SECONDS,
        clock.now() - IDLE_SECONDS,
    ]


async def test_people_are_warned_before_the_disk_is_full_and_once_it_is_not() -> None:
    clock, disk = ManualClock(), Disk(300)
    room = DiskRoom(disk, clock, Clones(disk, 10).shed)
    tasks = Tasks("test")
    tasks.start(room.watch(), name="watch")
    await clock.asleep(1)
    assert room.trouble == ""

    disk.left = 150
    await clock.advance(WATCH_SECONDS)
    await clock.asleep(1)
    warned = room.trouble
    disk.left = 195  # what is removed is enough
    await clock.advance(WATCH_SECONDS)
    await clock.asleep(1)
    await tasks.close()

    assert "on the disk of DATA_DIR" in warned
    assert room.trouble == ""
