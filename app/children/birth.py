"""How a child begins: the process itself, its pipes and its end given to the event loop.

`subprocess` uses vfork. uvloop would fork: with a heap like the bridge's, and Python's own hooks
in the child, that keeps everybody waiting for 5 to 30 ms instead of half of one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, cast

from app.children.pipes import Plumbing


async def begin(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path
) -> tuple[asyncio.SubprocessTransport, Plumbing]:
    """Start a process that leads a session of its own, with three pipes.

    Raises:
        OSError: the command or its folder is missing or may not be used.
    """
    if not _can_watch():
        return await asyncio.get_running_loop().subprocess_exec(
            Plumbing, *argv, env=dict(env), cwd=str(cwd), start_new_session=True
        )
    plumbing = Plumbing()
    # In the thread of the event loop, which is the parent that bubblewrap dies with.
    process = _Process(
        subprocess.Popen(  # noqa: ASYNC220 - half a millisecond
            argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        ),
        plumbing,
    )
    try:
        await process.connect()
    except BaseException:
        process.kill()
        process.close()
        raise
    return process, plumbing


class _Process(asyncio.SubprocessTransport):
    """A process whose end is seen through a descriptor of its own."""

    def __init__(self, process: subprocess.Popen[bytes], plumbing: Plumbing) -> None:
        super().__init__()
        self._process = process
        self._plumbing = plumbing
        self._files = cast("tuple[IO[bytes], ...]", (process.stdin, process.stdout, process.stderr))
        self._pipes: dict[int, asyncio.BaseTransport] = {}
        self._loop = asyncio.get_running_loop()
        self._descriptor = os.pidfd_open(process.pid)
        self._loop.add_reader(self._descriptor, self._collect)

    async def connect(self) -> None:
        """Give the pipes to the event loop."""
        loop, plumbing = self._loop, self._plumbing
        stdin, stdout, stderr = self._files
        self._pipes[0], _ = await loop.connect_write_pipe(lambda: _Input(plumbing), stdin)
        self._pipes[1], _ = await loop.connect_read_pipe(lambda: _Stream(plumbing, 1), stdout)
        self._pipes[2], _ = await loop.connect_read_pipe(lambda: _Stream(plumbing, 2), stderr)
        plumbing.connection_made(self)

    def get_pid(self) -> int:
        """Return its number."""
        return self._process.pid

    def get_returncode(self) -> int | None:
        """Return its exit status, None while it runs."""
        return self._process.returncode

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """Return the transport of one of its pipes."""
        return self._pipes.get(fd)

    def kill(self) -> None:
        """Kill it and whatever it has started meanwhile."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close all pipes; its end is still waited for."""
        for number, file in enumerate(self._files):
            self._pipes.get(number, file).close()

    def _collect(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._process.wait()
        self._plumbing.process_exited()


class _Stream(asyncio.Protocol):
    """What arrives through one of its pipes."""

    def __init__(self, plumbing: Plumbing, number: int) -> None:
        self._plumbing = plumbing
        self._number = number

    def data_received(self, data: bytes) -> None:
        self._plumbing.pipe_data_received(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._plumbing.pipe_connection_lost(self._number, exc)


class _Input(asyncio.BaseProtocol):
    """What goes into it."""

    def __init__(self, plumbing: Plumbing) -> None:
        self._plumbing = plumbing

    def pause_writing(self) -> None:
        self._plumbing.pause_writing()

    def resume_writing(self) -> None:
        self._plumbing.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._plumbing.pipe_connection_lost(0, exc)


@cache
def _can_watch() -> bool:
    """Tell whether the kernel gives descriptors of processes; old ones and some jails do not."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True
