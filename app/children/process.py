"""A child of the bridge: how it is started and what is known of it while it runs.

Every child leads a session and a group of its own and carries a marker; whoever starts one stops
it with `stop`, also when it ended by itself, because its own children may not have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from app.children.birth import begin
from app.children.census import entry_of, started
from app.children.environment import MARKER
from app.children.leftovers import ProcessIdentity
from app.children.pipes import Output, Plumbing
from app.children.sandbox import is_guarded
from app.errors import AgentNotStarted

_WORDS: Final = 2000
"""Characters of last words: a long traceback, and still one message in every place."""
_SIGNAL_BASE: Final = 128
"""bubblewrap, like a shell, reports death by signal N as status 128 + N."""
_LAST_SIGNAL: Final = 64


Step = Literal["exited", "closed", "terminated", "killed", "stuck"]


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a child ended."""

    step: Step
    """What ended it: `exited` if it was gone before, `stuck` if it is still there."""
    status: int | None
    swept: tuple[str, ...] = ()
    """Those who had outlived it, as `name (pid)`."""
    remaining: tuple[int, ...] = ()
    """Those who outlived even the sweep."""


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
    ) -> None:
        self._transport = transport
        self._plumbing = plumbing
        self.name = name
        self.pid = transport.get_pid()
        self.group = self.pid
        self.marker = marker
        self.started = started(entry_of(self.pid))
        self.guarded = guarded
        """Whether the first process is bubblewrap's guard, whose death kills the agent at once."""
        self.ending: asyncio.Task[StopReport] | None = None
        """The one stop of this child, once it has begun; only `stop` touches it."""

    @property
    def identity(self) -> ProcessIdentity:
        """What to store, so that it is found after a crash of the bridge."""
        return ProcessIdentity(group=self.group, started=self.started, marker=self.marker)

    @property
    def stdout(self) -> Output:
        """What it writes; reading slowly makes it wait."""
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
        """Wait until it has taken enough; unbounded, the caller sets the limit.

        Raises:
            BrokenPipeError: its input was closed before that.
        """
        await self._plumbing.drain()

    async def wait(self) -> int:
        """Wait for its end and the rest of its words, and return the status.

        A grandchild that holds its pipes open delays this by a moment, no more.
        """
        await self._plumbing.settled.wait()
        status = self.status
        assert status is not None, "an exited process has a status"
        return status

    async def exited(self) -> None:
        """Wait for its end alone; the last it wrote may still be on its way."""
        await self._plumbing.exited.wait()

    def last_words(self, limit: int = _WORDS) -> str:
        """Return the end of what it wrote to stderr; not checked for secrets."""
        return self._plumbing.errors.text(limit)

    def close_input(self) -> None:
        """Tell it that nothing more will come."""
        self._plumbing.close_input()

    def discard_output(self) -> None:
        """End the reading and throw away what it still writes."""
        self._plumbing.output.discard()

    def close(self) -> None:
        """Close all pipes; only after its end."""
        self._plumbing.release()
        self._transport.close()


async def spawn(argv: Sequence[str], *, name: str, env: Mapping[str, str], cwd: Path) -> Child:
    """Start a process in a session of its own; `env` is all it gets and must hold the marker.

    Raises:
        AgentNotStarted: the command or its folder is missing or may not be used.
    """
    try:
        transport, plumbing = await begin(argv, env=env, cwd=cwd)
    except OSError as error:
        raise AgentNotStarted(
            name,
            f"{argv[0]!r}: {error.strerror or type(error).__name__}",
            "Check its command, and that its workspace exists.",
        ) from error
    return Child(
        transport,
        plumbing,
        name=name,
        marker=env[MARKER],
        guarded=is_guarded(argv),
    )
