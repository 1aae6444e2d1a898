"""Room on the disk: what must stay free, and the reserve of the store."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from app.children.limits import RESERVE_BYTES, DiskSpace
from app.errors import DiskNearlyFull

Disk = namedtuple("Disk", "total used free")
GIBIBYTE = 1024**3


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a test say how many bytes of a terabyte are free."""
    free = [500 * GIBIBYTE]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1024**4, 1024**4 - free[0], free[0]))
    return free


async def test_work_begins_only_above_the_watermark(tmp_path: Path, disk: list[int]) -> None:
    room = DiskSpace(tmp_path)
    await room.check_room()
    disk[0] = GIBIBYTE - 1

    with pytest.raises(DiskNearlyFull, match="1023 MiB are free and 1024 MiB must stay free"):
        await room.check_room()


async def test_what_is_about_to_be_written_counts(tmp_path: Path, disk: list[int]) -> None:
    disk[0] = 2 * GIBIBYTE

    with pytest.raises(DiskNearlyFull):
        await DiskSpace(tmp_path).check_room(GIBIBYTE + 1)


def test_the_reserve_is_given_up_when_the_disk_is_full_and_taken_again_later(
    tmp_path: Path, disk: list[int]
) -> None:
    room, reserve = DiskSpace(tmp_path), tmp_path / "reserve"

    room.keep_reserve()
    assert reserve.stat().st_size == RESERVE_BYTES
    assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES

    disk[0] = GIBIBYTE // 2
    room.keep_reserve()
    assert reserve.exists()

    disk[0] = 1024
    room.keep_reserve()
    assert not reserve.exists()

    disk[0] = GIBIBYTE
    room.keep_reserve()
    assert not reserve.exists()

    disk[0] = 2 * GIBIBYTE
    room.keep_reserve()
    assert reserve.exists()


@pytest.mark.usefixtures("disk")
def test_the_reserve_takes_room_also_where_a_file_cannot_be_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate")

    DiskSpace(tmp_path).keep_reserve()

    (reserve,) = tmp_path.iterdir()
    assert reserve.stat().st_blocks * 512 >= RESERVE_BYTES
