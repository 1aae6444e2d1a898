"""A lock on a file keeps other threads and other processes out, and frees itself."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from app.children import file_lock
from app.children.file_lock import FileLock, hold

HOLD = (
    "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); print(flush=True); input()"
)


def hold_elsewhere(file: Path) -> subprocess.Popen[str]:
    """Hold a lock in another process until that is killed."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    other.stdout.readline()
    return other


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_lock_waits_for_another_process_to_die_and_may_be_taken_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "lock"
    lock = FileLock(file)
    with lock, lock:
        pass
    other = hold_elsewhere(file)
    with monkeypatch.context() as patched:
        patched.setattr(file_lock, "SHORT_SECONDS", 0.0)
        with pytest.raises(TimeoutError, match="another bridge holds lock"), lock:
            pass
    end(other)
    with lock:
        pass


async def test_long_work_waits_for_another_process_within_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    other = hold_elsewhere(file)
    with pytest.raises(TimeoutError):
        async with hold(file, 0.1):
            pass
    entered = asyncio.Event()

    async def work() -> None:
        async with hold(file, 30):
            entered.set()

    task = asyncio.create_task(work())
    assert not entered.is_set()
    end(other)
    await asyncio.wait_for(task, 30)
