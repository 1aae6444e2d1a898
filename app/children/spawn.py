"""Spawns a command, in its guard, and gives its pipes and its exit to the event loop.

Every child leads its own session and group and carries a marker. The code that spawns one must stop
it with `stop`, even if it exited by itself, because its own children may still run.

The guard gets its options through a descriptor: every process inside can read a command line, and
it would name what is hidden. `subprocess` uses vfork. uvloop would fork: with a heap like the
bridge's, and Python's own hooks in the child, that blocks the event loop for 5 to 30 ms instead of
half of one.

Every descriptor is closed once: a second close would hit a file that another thread has opened
under the same number meanwhile, perhaps the database.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from app.children.environment import MARKER
from app.children.process import Child, Plumbing
from app.errors import AgentNotStarted

_UMASK: Final = 0o022
"""The usual one: people must be able to use what a child creates. The bridge's own is 077."""


@dataclass(frozen=True, slots=True)
class SandboxWrapper:
    """bubblewrap around a command."""

    binary: str
    options: tuple[str, ...]
    fleeting: frozenset[str] = frozenset()
    """Paths of others that it hides: bubblewrap fails if one of them is gone."""

    def current_options(self) -> Iterator[str]:
        """Yield the options without those for a path that is gone by now."""
        gone = {path for path in self.fleeting if not os.path.lexists(path)}
        if not gone:
            yield from self.options
            return
        starts = [index for index, word in enumerate(self.options) if word.startswith("--")]
        for start, end in pairwise([*starts, len(self.options)]):
            if self.options[end - 1] not in gone:
                yield from self.options[start:end]

    @property
    def is_outdated(self) -> bool:
        """Whether something that it hides is gone, so that another try may succeed."""
        return not all(map(os.path.lexists, self.fleeting))


@dataclass(frozen=True, slots=True)
class ChildCommand:
    """What to start."""

    argv: tuple[str, ...]
    guard: SandboxWrapper | None = None
    has_reaper: bool = False
    """Whether its first process stays, and kills all descendants when it gets SIGUSR1."""
    descriptors: tuple[int, ...] = ()
    """Inherited under their own numbers."""

    @contextmanager
    def open(self) -> Iterator[tuple[list[str], tuple[int, ...]]]:
        """Yield the argv to execute and the descriptors to pass; valid inside the block."""
        if self.guard is None:
            yield list(self.argv), self.descriptors
            return
        options = os.memfd_create("sandbox")
        try:
            os.write(
                options, "".join(f"{word}\0" for word in self.guard.current_options()).encode()
            )
            os.lseek(options, 0, os.SEEK_SET)
            argv = [self.guard.binary, "--args", str(options), "--", *self.argv]
            yield argv, (*self.descriptors, options)
        finally:
            os.close(options)


@dataclass(frozen=True, slots=True)
class _Child:
    """A process and the descriptors that lead to it."""

    process: subprocess.Popen[bytes]
    handle: int
    """Readable once the process has exited."""
    ends: tuple[int, ...]
    """Our ends of stdin, stdout and stderr."""


async def spawn(command: ChildCommand, *, name: str, env: Mapping[str, str], cwd: Path) -> Child:
    """Start a process in its own session; `env` is its whole environment, with the marker.

    Raises:
        AgentNotStarted: the command or its folder is missing or not accessible.
    """
    try:
        transport, plumbing = await _start(command, env=env, cwd=cwd)
    except OSError as error:
        raise AgentNotStarted(
            name,
            f"{command.argv[0]!r}: {error.strerror or type(error).__name__}",
            "Check its command, and that its workspace exists.",
        ) from error
    return Child(
        transport,
        plumbing,
        name=name,
        marker=env[MARKER],
        guarded=command.guard is not None or command.has_reaper,
        has_reaper=command.has_reaper,
    )


async def _start(
    command: ChildCommand, *, env: Mapping[str, str], cwd: Path
) -> tuple[asyncio.SubprocessTransport, Plumbing]:
    """Start a process that leads its own session, with three pipes.

    Raises:
        OSError: the command or its folder is missing or not accessible.
    """
    with command.open() as (argv, inherited):
        if not _can_watch():
            return await asyncio.get_running_loop().subprocess_exec(
                Plumbing,
                *argv,
                env=dict(env),
                cwd=str(cwd),
                start_new_session=True,
                pass_fds=inherited,
                umask=_UMASK,
            )
        plumbing = Plumbing()
        process = _Process(_spawn(argv, inherited, env=env, cwd=cwd), plumbing)
    try:
        await process.connect()
    except BaseException:
        process.kill()
        process.close()
        raise
    return process, plumbing


def _spawn(
    argv: Sequence[str], inherited: Sequence[int], *, env: Mapping[str, str], cwd: Path
) -> _Child:
    """Start a process in this thread: bubblewrap dies with the thread that started it."""
    ends: list[int] = []
    with ExitStack() as failed, ExitStack() as theirs:
        inside: list[int] = []
        for number in range(3):
            reading, writing = os.pipe()
            mine, its = (writing, reading) if number == 0 else (reading, writing)
            failed.callback(os.close, mine)
            theirs.callback(os.close, its)
            ends.append(mine)
            inside.append(its)
        process = subprocess.Popen(
            argv,
            stdin=inside[0],
            stdout=inside[1],
            stderr=inside[2],
            env=env,
            cwd=cwd,
            start_new_session=True,
            pass_fds=inherited,
            umask=_UMASK,
        )
        try:
            handle = os.pidfd_open(process.pid)
        except OSError:
            process.kill()
            process.wait()
            raise
        failed.pop_all()
    return _Child(process, handle, tuple(ends))


class _Process(asyncio.SubprocessTransport):
    """A process whose exit is seen through its own descriptor."""

    def __init__(self, child: _Child, plumbing: Plumbing) -> None:
        super().__init__()
        self._process = child.process
        self._handle = child.handle
        self._ends = list(child.ends)
        """Those not yet given to the event loop."""
        self._plumbing = plumbing
        self._pipes: list[asyncio.BaseTransport] = []
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._handle, self._collect)

    async def connect(self) -> None:
        """Give the pipes to the event loop, which closes them from then on, even on failure."""
        loop, plumbing = self._loop, self._plumbing
        for number in range(3):
            end = _End(self._ends.pop(0), loop)
            connect = loop.connect_read_pipe if number else loop.connect_write_pipe
            pipe, _ = await connect(partial(_protocol, plumbing, number), end)
            self._pipes.append(pipe)
        plumbing.connection_made(self)

    def get_pid(self) -> int:
        """Return its number."""
        return self._process.pid

    def get_returncode(self) -> int | None:
        """Return its exit status, None while it runs."""
        return self._process.returncode

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """Return the transport of one of its pipes."""
        return self._pipes[fd] if fd < len(self._pipes) else None

    def kill(self) -> None:
        """Kill it and everything in its group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close all pipes; its exit is still awaited."""
        for pipe in self._pipes:
            pipe.close()
        while self._ends:
            os.close(self._ends.pop())

    def _collect(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self._process.wait()
        self._plumbing.process_exited()


class _End:
    """Our end of a pipe, in the form that event loops accept."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self._descriptor = descriptor
        self._closes = not type(loop).__module__.startswith("uvloop")

    def fileno(self) -> int:
        """Return its number."""
        return self._descriptor

    def close(self) -> None:
        """Close it; uvloop calls this too, when it has just closed the descriptor itself."""
        if self._closes:
            os.close(self._descriptor)


class _Stream(asyncio.Protocol):
    """Receives from one of its pipes."""

    def __init__(self, plumbing: Plumbing, number: int) -> None:
        self._plumbing = plumbing
        self._number = number

    def data_received(self, data: bytes) -> None:
        self._plumbing.pipe_data_received(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._plumbing.pipe_connection_lost(self._number, exc)


class _Input(asyncio.BaseProtocol):
    """Writes to its input."""

    def __init__(self, plumbing: Plumbing) -> None:
        self._plumbing = plumbing

    def pause_writing(self) -> None:
        self._plumbing.pause_writing()

    def resume_writing(self) -> None:
        self._plumbing.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._plumbing.pipe_connection_lost(0, exc)


def _protocol(plumbing: Plumbing, number: int) -> asyncio.BaseProtocol:
    return _Stream(plumbing, number) if number else _Input(plumbing)


@cache
def _can_watch() -> bool:
    """Tell whether the kernel supports pidfd; old ones and some sandboxes do not."""
    if sys.platform != "linux":
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True
