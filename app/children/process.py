"""Starts child processes and describes them while they run.

Every child leads its own session and group and carries a marker. The code that starts one must stop
it with `stop`, even if it exited by itself, because its own children may still run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from app.children.command import Command
from app.children.environment import MARKER
from app.children.leftovers import ProcessIdentity
from app.children.network.link import Link
from app.children.pipes import Output, Plumbing
from app.children.proc_table import entry_of, started
from app.children.spawn import begin
from app.errors import AgentNotStarted

_WORDS: Final = 2000
"""Characters of last output: a long traceback, and still one message in every place."""
_SIGNAL_BASE: Final = 128
"""bubblewrap and the reaper, like a shell, report death by signal N as status 128 + N."""
_LAST_SIGNAL: Final = 64


Step = Literal["exited", "closed", "terminated", "killed", "stuck"]


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
        self.link: Link | None = None
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


async def spawn(command: Command, *, name: str, env: Mapping[str, str], cwd: Path) -> Child:
    """Start a process in its own session; `env` is its whole environment, with the marker.

    Raises:
        AgentNotStarted: the command or its folder is missing or not accessible.
    """
    try:
        transport, plumbing = await begin(command, env=env, cwd=cwd)
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
