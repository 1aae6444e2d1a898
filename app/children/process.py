"""Describes a running child and handles its three pipes: output, the tail of stderr, input.

Stderr is always read and output is read until its buffer is full, so memory stays bounded however
much a child writes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal, cast

from app.children.network.link import NetworkLink
from app.children.proc_table import ProcessIdentity, entry_of, started

_FULL_BYTES: Final = 512 * 1024
"""Where reading pauses: two of the event loop's largest reads, so a fast reader never waits."""
_LOW_BYTES: Final = 128 * 1024
"""Where reading resumes: early enough that the pipe (64 KiB) fills up meanwhile."""
_TAIL_BYTES: Final = 64 * 1024
"""Enough for any traceback, little enough to hold for every child."""
_LINGER_SECONDS: Final = 0.25
"""How long after a child's end its output may still arrive: a grandchild may hold the pipe open
for ever, but what the child itself wrote is already in it."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_WORDS: Final = 2000
"""Characters of last output: a long traceback, and still one message in every place."""
_SIGNAL_BASE: Final = 128
"""bubblewrap and the reaper, like a shell, report death by signal N as status 128 + N."""
_LAST_SIGNAL: Final = 64


Step = Literal["exited", "closed", "terminated", "killed", "stuck"]


class Output:
    """A child's output, for one reader; `read` works like that of `asyncio.StreamReader`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._ended = False
        self._discarding = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.ReadTransport | None = None

    async def read(self, limit: int = -1) -> bytes:
        """Return at least one byte and at most `limit`, or nothing at the end."""
        while not self._buffer and not self._ended:
            if self._waiter is not None:
                raise RuntimeError("two readers on one output")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if limit < 0 or len(self._buffer) <= limit:
            data = bytes(self._buffer)
            self._buffer.clear()
        else:
            data = bytes(memoryview(self._buffer)[:limit])
            del self._buffer[:limit]
        if self._paused and len(self._buffer) <= _LOW_BYTES:
            self._resume()
        return data

    def at_eof(self) -> bool:
        """Tell whether everything has been read."""
        return self._ended and not self._buffer

    @property
    def is_paused(self) -> bool:
        """Whether the child has to wait for its reader."""
        return self._paused

    def attach(self, transport: asyncio.ReadTransport) -> None:
        """Set the transport to pause."""
        self._transport = transport

    def feed(self, data: bytes) -> None:
        """Add what arrived."""
        if self._ended or self._discarding:
            return
        self._buffer += data
        self._wake()
        if len(self._buffer) > _FULL_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def end(self) -> None:
        """Let the reader see the end once it has read the rest."""
        self._ended = True
        self._wake()

    def discard(self) -> None:
        """End, and discard what still arrives, so that the child never blocks on a full pipe."""
        self._discarding = True
        if self._paused:
            self._resume()
        self.end()

    def _resume(self) -> None:
        self._paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Tail:
    """The last bytes of a stream that has no reader."""

    def __init__(self, size: int = _TAIL_BYTES) -> None:
        self._size = size
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Add what arrived and drop the oldest bytes."""
        self._bytes += data[-self._size :]
        del self._bytes[: -self._size]

    def text(self, limit: int) -> str:
        """Return the last characters, in whole lines if possible."""
        text = self._bytes.decode(errors="replace").strip()
        if len(text) <= limit:
            return text
        cut = text[-limit:]
        return cut.partition("\n")[2] or cut


class Plumbing(asyncio.SubprocessProtocol):
    """Connects the event loop's callbacks to one child's output, tail, input and exit."""

    def __init__(self) -> None:
        self.output = Output()
        self.errors = Tail()
        self.exited = asyncio.Event()
        self.settled = asyncio.Event()
        """Exited, and all it wrote has arrived or had time to."""
        self._unread = {_STDOUT, _STDERR}
        self._stdin: asyncio.WriteTransport | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect the pipes."""
        process = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", process.get_pipe_transport(_STDIN))
        self.output.attach(cast("asyncio.ReadTransport", process.get_pipe_transport(_STDOUT)))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Pass on what the child wrote."""
        if fd == _STDOUT:
            self.output.feed(data)
        else:
            self.errors.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """Record that one pipe is closed."""
        self._unread.discard(fd)
        if fd == _STDOUT:
            self.output.end()
        elif fd == _STDIN:
            self._stdin = None
            self._may_write.set()
        self._settle()

    def process_exited(self) -> None:
        """Record the exit, which may come long before the pipes close."""
        self.exited.set()
        self._settle()
        self._linger = asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._end_output)

    def pause_writing(self) -> None:
        """Make writers wait."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Let writers continue."""
        self._may_write.set()

    def write(self, data: bytes) -> None:
        """Queue bytes for the child.

        Raises:
            BrokenPipeError: its input is closed.
        """
        if self._stdin is None or self._stdin.is_closing():
            raise BrokenPipeError("the input of the process is closed")
        self._stdin.write(data)

    async def drain(self) -> None:
        """Wait until the child has read enough of what was written.

        Raises:
            BrokenPipeError: its input was closed before that.
        """
        await self._may_write.wait()
        if self._stdin is None or self._stdin.is_closing():
            raise BrokenPipeError("the input of the process is closed")

    def close_input(self) -> None:
        """Tell the child that nothing more will come; what is queued is still sent."""
        if self._stdin is not None:
            self._stdin.close()
        self._may_write.set()

    def release(self) -> None:
        """Release everything that waits."""
        if self._linger is not None:
            self._linger.cancel()
        self.settled.set()
        self.output.discard()
        self._may_write.set()

    def _settle(self) -> None:
        if self.exited.is_set() and not self._unread:
            self.settled.set()

    def _end_output(self) -> None:
        self.settled.set()
        if self.output.is_paused:
            # What the child wrote is still in the pipe: its reader is slow, not gone.
            loop = asyncio.get_running_loop()
            self._linger = loop.call_later(_LINGER_SECONDS, self._end_output)
        else:
            self.output.end()


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a child ended."""

    step: Step
    """What ended it: `exited` if it was already gone, `stuck` if it still runs."""
    status: int | None
    swept: tuple[str, ...] = ()
    """Its descendants that outlived it, as `name (pid)`."""
    remaining: tuple[int, ...] = ()
    """Those that outlived even the sweep."""


class Child:
    """One running process with its pipes."""

    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        plumbing: Plumbing,
        *,
        name: str,
        marker: str,
        guarded: bool,
        has_reaper: bool,
    ) -> None:
        self._transport = transport
        self._plumbing = plumbing
        self.name = name
        self.pid = transport.get_pid()
        self.group = self.pid
        self.marker = marker
        self.started = started(entry_of(self.pid))
        self.guarded = guarded
        """Whether the first process is not the agent, but bubblewrap or a reaper around it."""
        self.has_reaper = has_reaper
        """Whether the first process kills all descendants when it gets SIGUSR1."""
        self.layers = (1 if has_reaper else 2) if guarded else 0
        """How many processes are around the program: a reaper, or bubblewrap and its init."""
        self.link: NetworkLink | None = None
        """Connects its network to the outside; it ends with the child."""
        self.ending: asyncio.Task[StopReport] | None = None
        """The one stop of this child, once it has begun; only `stop` touches it."""

    @property
    def identity(self) -> ProcessIdentity:
        """What to store, so that it is found after the bridge crashes."""
        return ProcessIdentity(group=self.group, started=self.started, marker=self.marker)

    @property
    def stdout(self) -> Output:
        """Its output; a slow reader makes it wait."""
        return self._plumbing.output

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal, None while it runs."""
        status = self._transport.get_returncode()
        if status is not None and self.guarded and 0 < status - _SIGNAL_BASE <= _LAST_SIGNAL:
            return _SIGNAL_BASE - status
        return status

    def write(self, data: bytes) -> None:
        """Queue bytes for its input; follow with `drain`.

        Raises:
            BrokenPipeError: its input is closed.
        """
        self._plumbing.write(data)

    async def drain(self) -> None:
        """Wait until it has read enough; unbounded, the caller sets the limit.

        Raises:
            BrokenPipeError: its input was closed before that.
        """
        await self._plumbing.drain()

    async def wait(self) -> int:
        """Wait for its exit and the rest of its output, and return the status.

        A grandchild that holds its pipes open delays this by a moment, no more.
        """
        await self._plumbing.settled.wait()
        status = self.status
        assert status is not None, "an exited process has a status"
        return status

    async def exited(self) -> None:
        """Wait only for its exit; its last output may still be on its way."""
        await self._plumbing.exited.wait()

    def last_words(self, limit: int = _WORDS) -> str:
        """Return the end of its stderr; not checked for secrets."""
        return self._plumbing.errors.text(limit)

    def close_input(self) -> None:
        """Tell it that nothing more will come."""
        self._plumbing.close_input()

    def discard_output(self) -> None:
        """Stop reading and discard what it still writes."""
        self._plumbing.output.discard()

    def close(self) -> None:
        """Close all pipes; only after its exit."""
        self._plumbing.release()
        self._transport.close()
