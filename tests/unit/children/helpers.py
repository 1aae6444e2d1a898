"""What the tests of children do again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from app.children.process import Child
from app.children.spawn import ChildCommand
from app.children.stop import running

BOUND = 5.0


async def outcome(
    command: ChildCommand | Sequence[str], env: Mapping[str, str], cwd: Path
) -> tuple[int, str, str]:
    """Run to the end; return status, output and last words."""
    command = command if isinstance(command, ChildCommand) else ChildCommand(tuple(command))
    async with asyncio.timeout(BOUND), running(command, name="test", env=env, cwd=cwd) as child:
        output = await rest(child)
        return await child.wait(), output, child.last_words()


async def rest(child: Child) -> str:
    written = bytearray()
    while data := await child.stdout.read(65536):
        written += data
    return written.decode()


async def line(child: Child) -> str:
    """Read one short line."""
    written = b""
    async with asyncio.timeout(BOUND):
        while not written.endswith(b"\n"):
            data = await child.stdout.read(1)
            assert data, f"ended after {written!r}: {child.last_words()}"
            written += data
    return written.decode().strip()


async def eventually(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND):
        while not check():  # noqa: ASYNC110 - the kernel sends no event for foreign processes
            await asyncio.sleep(0.005)


def eventually_now(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BOUND
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def carriers(marker: str) -> list[str]:
    """Return who carries a marker, read from /proc without the code under test."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            environ = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if f"AGENT_BRIDGE_PROCESS={marker}".encode() in environ.split(b"\0"):
            found.append(folder.name)
    return found


def exists(pid: int) -> bool:
    """Whether a process runs, zombies not counted."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
