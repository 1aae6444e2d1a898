"""A terminal as the place for everything but the answer: colours, and one line that moves.

It may be closed at any moment; that must not keep anybody from stopping an agent.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

FRAMES_PER_SECOND: Final = 8
"""Looks alive, costs nothing."""


class Terminal:
    """Lines that stay, and below them one that says what is going on now."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)
        self._spinner = Spinner("dots", style="cyan")
        self._since = time.monotonic()
        self._words = ""
        self._live: Live | None = None

    def line(self, text: str, style: str = "") -> None:
        """Write a line that stays."""
        self.still()
        with suppress(OSError):
            self._console.print(Text(text, style=style), soft_wrap=True)

    def prompt(self, text: str) -> None:
        """Write words that a person answers on the same line."""
        self.still()
        with suppress(OSError):
            self._console.print(Text(text, style="bold"), end="")

    def status(self, words: str) -> None:
        """Say what is going on now, until something else is said."""
        self._words = words
        if self._live is None:
            self._live = Live(
                get_renderable=self._moving,
                console=self._console,
                refresh_per_second=FRAMES_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            with suppress(OSError):
                self._live.start()

    def still(self) -> None:
        """Take the moving line away."""
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):
                live.stop()

    def _moving(self) -> Spinner:
        seconds = int(time.monotonic() - self._since)
        words = f"{self._words} · {seconds} s" if seconds else self._words
        self._spinner.update(text=Text(words, style="dim", no_wrap=True, overflow="ellipsis"))
        return self._spinner
