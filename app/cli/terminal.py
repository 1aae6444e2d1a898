"""Shows everything but the answer on a terminal: coloured lines, and one status line.

The terminal may be closed at any moment; an agent must still be stopped then.
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
"""Looks smooth and costs nothing."""


class Terminal:
    """Lines that stay, and a status line below them."""

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
        """Write a prompt that a person answers on the same line."""
        self.still()
        with suppress(OSError):
            self._console.print(Text(text, style="bold"), end="")

    def status(self, words: str) -> None:
        """Show what is going on now, until something else is shown."""
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
        """Erase the status line."""
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):
                live.stop()

    def _moving(self) -> Spinner:
        seconds = int(time.monotonic() - self._since)
        words = f"{self._words} · {seconds} s" if seconds else self._words
        self._spinner.update(text=Text(words, style="dim", no_wrap=True, overflow="ellipsis"))
        return self._spinner
