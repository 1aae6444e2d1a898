"""Runs a command for the user at the terminal: they talk to it, and the bridge waits.

The command never holds the user's terminal: with it, it could type into the shell that waits there
(TIOCSTI). It gets a pseudo-terminal of its own, and the bridge passes on what both sides send.

A terminal answers some sequences as if the user had typed, sets the clipboard, or keeps a mode: a
hostile program would type into the shell that comes after it. So only text, colours and the cursor
are shown; what is not listed here is dropped.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from app.children.spawn import ChildCommand
from app.errors import AgentNotStarted

LOOK_SECONDS: Final = 0.1
"""How often to look for the end of a command whose children still hold its terminal."""
KILL_SECONDS: Final = 5.0
"""How long a killed command may take to end."""
_PIECE_BYTES: Final = 4096
_END_OF_INPUT: Final = b"\x04"
"""Ctrl-D."""
_STANDARD: Final = (0, 1, 2)
LONGEST_SEQUENCE: Final = 8192
"""Characters of a sequence whose end has not come yet: longer than the address of any log-in."""
_STRING: Final = r"\x1b[\]PX^_](?:(?!\x07|\x1b\\).)*"
_TOKEN: Final = re.compile(
    r"(?P<keep>"
    r"\x1b\[[0-9;:]*[A-HJ-MPSTX@`dfmr]"  # cursor, erasing, scrolling, colours
    r"|\x1b\[\?(?:7|25|1049|2004|2026)[hl]"  # line wrap, cursor, second screen, pastes, updates
    r"|\x1b[78M]|\x1b\([0B])"  # saved cursor, line up, lines of boxes
    rf"|\x1b\[[0-?]*[ -/]*[@-~]|{_STRING}(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|\x1b"
    r"|[\x00-\x06\x0b\x0c\x0e-\x1f\x7f-\x9f]",
    re.DOTALL,
)
_UNFINISHED: Final = re.compile(rf"(?:\x1b\[[0-?]*[ -/]*|{_STRING}|\x1b[ -/]*)\Z", re.DOTALL)


def run_in_terminal(command: ChildCommand, *, name: str, env: Mapping[str, str], cwd: Path) -> int:
    """Run a command to its end and return its status; Ctrl-C reaches only the command.

    Raises:
        AgentNotStarted: the command or its folder is missing or not accessible.
    """
    terminal = next(filter(os.isatty, _STANDARD), None)
    with command.open() as (argv, inherited), _own_terminal(terminal) as (ours, theirs):
        try:
            process = subprocess.Popen(
                argv,
                env=dict(env),
                cwd=cwd,
                pass_fds=inherited,
                start_new_session=True,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                # No other thread runs here that could hold a lock.
                preexec_fn=None
                if theirs is None
                else partial(fcntl.ioctl, 0, termios.TIOCSCTTY, 0),
            )
        except OSError as error:
            raise AgentNotStarted(
                name,
                f"{command.argv[0]!r}: {error.strerror or type(error).__name__}",
                "Check its command.",
            ) from error
        try:
            with _signals(process, lambda: _follow_size(terminal, ours)):
                if ours is not None and theirs is not None:
                    os.close(theirs)
                    _relay(process, ours)
                return process.wait()
        finally:
            process.kill()
            process.wait(KILL_SECONDS)


@contextmanager
def _own_terminal(terminal: int | None) -> Iterator[tuple[int | None, int | None]]:
    """Open a pseudo-terminal like the user's, which passes each key on meanwhile."""
    if terminal is None:
        yield None, None
        return
    ours, theirs = pty.openpty()
    _follow_size(terminal, ours)
    before = termios.tcgetattr(terminal)
    termios.tcsetattr(theirs, termios.TCSANOW, before)
    try:
        tty.setraw(terminal)
        yield ours, theirs
    finally:
        # Flushed: what the terminal answered to the command is no input for the shell.
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        os.close(ours)
        with suppress(OSError):
            os.close(theirs)


def _follow_size(terminal: int | None, ours: int | None) -> None:
    if terminal is not None and ours is not None:
        size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(ours, termios.TIOCSWINSZ, size)


@contextmanager
def _signals(process: subprocess.Popen[bytes], resize: Callable[[], None]) -> Iterator[None]:
    """Pass an interrupt on to the command; end with the terminal put back when told to end."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    wanted = {
        signal.SIGINT: interrupt,
        signal.SIGTERM: end,
        signal.SIGHUP: end,
        signal.SIGWINCH: lambda *_: resize(),
    }
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _relay(process: subprocess.Popen[bytes], ours: int) -> None:
    """Pass on what the user types and what the command shows, until it has ended."""
    screen, sources = OutputFilter(), [0, ours]
    while True:
        has_ended = process.poll() is not None
        ready, _, _ = select.select(sources, [], [], 0 if has_ended else LOOK_SECONDS)
        if ours in ready:
            try:
                output = os.read(ours, _PIECE_BYTES)
            except OSError:  # Linux: all have closed it
                output = b""
            if not output:
                return
            _write(1, screen.filter(output))
        elif has_ended:
            return
        if 0 in ready:
            typed = os.read(0, _PIECE_BYTES)
            if not typed:
                sources.remove(0)
            _write(ours, typed or _END_OF_INPUT)


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


class OutputFilter:
    """Filters a stream of output."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""
        """The beginning of a sequence whose end has not come yet."""

    def filter(self, output: bytes) -> bytes:
        """Return what may be shown of the next piece."""
        text = self._held + self._decode(output)
        unfinished = _UNFINISHED.search(text)
        end = len(text) if unfinished is None else unfinished.start()
        self._held = text[end:] if len(text) - end <= LONGEST_SEQUENCE else ""
        return _TOKEN.sub(lambda each: each["keep"] or "", text[:end]).encode()
