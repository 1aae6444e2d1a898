"""Answers what an agent asks: by the person at the terminal, or by the rule that was given.

Nothing is allowed without a person or a rule that allows it: without both the answer is no.
"""

from __future__ import annotations

import asyncio
import os
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from app.model.updates import AskKind
from app.server.shapes import OptionOut
from app.terminal.framing import one_line
from app.terminal.screen import Screen, wait_readable

LINE_BYTES: Final = 4096
"""The longest line that a terminal delivers."""


class Allow(StrEnum):
    """What is answered to an agent's asks without a person."""

    ONCE = "once"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent asks, with everything needed to judge it."""

    agent: str
    title: str
    """As it is shown: without control characters that a terminal would obey."""
    options: Sequence[OptionOut]
    details: Sequence[str] = ()
    is_sentence: bool = False
    """Whether the title says who asks."""
    free_text: bool = False
    """Whether free text answers it."""
    kind: AskKind = "permission"
    resumes: bool = False
    """Whether it goes on by itself after a time."""


class Responder(Protocol):
    """Answers questions."""

    async def choose(self, question: Question) -> str | None:
        """Choose an option by its id, or answer in words; None if there is nothing to choose."""


class RuleAnswers:
    """Answers by a rule; without one it rejects."""

    def __init__(self, screen: Screen, allow: Allow | None) -> None:
        self._screen = screen
        self._allow = allow

    async def choose(self, question: Question) -> str | None:
        """Allow once if the rule says so and the agent offers it, else reject.

        A rule is about what agents may do; limits and budgets are for people to decide.
        """
        show(self._screen, question)
        if question.resumes:
            await asyncio.Event().wait()  # until it has gone on by itself and this is cancelled
        if question.kind == "pause":
            return None
        permission = question.kind == "permission"
        allowing = _of_kind(question.options, "allow_once") if permission else None
        refusing = _of_kind(question.options, "reject")
        chosen = allowing or refusing if self._allow is Allow.ONCE else refusing
        if chosen is None:
            return None
        hint = "; --allow once would allow it" if allowing else ""
        why = "" if self._allow else f" (no one is at the terminal{hint})"
        self._screen.line(f"  {one_line(chosen.name)}{why}", "bold")
        return chosen.id


class KeyboardAnswers:
    """Answers from the keyboard."""

    def __init__(self, screen: Screen, keyboard: int) -> None:
        self._screen = screen
        self._keyboard = keyboard
        self._typed = b""

    async def choose(self, question: Question) -> str | None:
        """Show the options and read a number, a name or words that fit; Ctrl-D rejects."""
        show(self._screen, question)
        for number, option in enumerate(question.options, start=1):
            self._screen.line(f"  {number}  {one_line(option.name)}")
        # What was typed before the question appeared is no answer to it.
        self._typed = b""
        termios.tcflush(self._keyboard, termios.TCIFLUSH)
        while True:
            with self._screen.prompt(_prompt(question)):
                line = await self._line()
            if line is None:
                self._screen.line("")
                rejection = _of_kind(question.options, "reject")
                return rejection.id if rejection else None
            if (option_id := match(line, question.options)) is not None:
                return option_id
            if question.free_text and line.strip():
                return line.strip()
            self._screen.line("  Type a number or the name of an option.", "yellow")

    async def _line(self) -> str | None:
        """Read a line without holding up the loop; None at the end of the input."""
        while b"\n" not in self._typed:
            await wait_readable(self._keyboard)
            data = os.read(self._keyboard, LINE_BYTES)
            if not data:
                return None
            self._typed += data
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(errors="replace")


def match(typed: str, options: Sequence[OptionOut]) -> str | None:
    """Find the option that was typed: by its number, its name or its id."""
    word = typed.strip().casefold()
    for number, option in enumerate(options, start=1):
        if word and word in {str(number), option.name.casefold(), option.id.casefold()}:
            return option.id
    return None


def show(screen: Screen, question: Question) -> None:
    """Show what is asked."""
    first, *more = question.title.split("\n")
    asks = "" if question.is_sentence else f"{question.agent} asks: "
    screen.line(f"? {asks}{first}".rstrip(), "bold yellow")
    for line in more:
        screen.line(f"  {line}", "bold yellow")
    for line in question.details:
        screen.line(f"  {line}", "dim")


def _prompt(question: Question) -> str:
    last = len(question.options)
    ways = ["1" if last == 1 else f"1-{last}"] if last else []
    if ways and question.free_text:
        ways.append("or in words")
    return f"Answer ({', '.join(ways)}): " if ways else "Answer: "


def _of_kind(options: Sequence[OptionOut], kind: str) -> OptionOut | None:
    return next((option for option in options if option.kind.startswith(kind)), None)
