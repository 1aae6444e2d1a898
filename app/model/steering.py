"""Values of steering: where words are that go into a running turn, and the marks they carry; pure.

An agent's word that it took them is not durable: it may die before it reads them. Each text that is
steered ends with a mark, which a replayed conversation shows or does not.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

_MARK: Final = re.compile(r"<!-- bridge:m-(\d{1,18}) -->")
_LINE: Final = re.compile(rf"[ \t]*{_MARK.pattern}\n?")
MARK_CHARACTERS: Final = 40
"""No mark is longer."""


class Steered(StrEnum):
    """Where words are that were said to a working agent."""

    JOINED = "joined"
    """They are told with the prompt of a turn that was being started."""
    SENT = "sent"
    """They are on their way into the running turn, or may be."""
    TAKEN = "taken"
    """The agent has them, but may not have read them."""
    READ = "read"
    """They are part of the agent's conversation."""


MAYBE_KNOWN: Final = frozenset({Steered.SENT, Steered.TAKEN})
"""Words that the agent may have read, or not."""


def mark(number: int) -> str:
    """Write the mark of a message."""
    return f"<!-- bridge:m-{number} -->"


def find_marks(text: str) -> frozenset[int]:
    """Find the messages whose marks a text has."""
    return frozenset(int(number) for number in _MARK.findall(text))


def strip_marks(text: str) -> str:
    """Take all marks out of a text: with one, a person could hide the words of another."""
    return _LINE.sub("", text) if "<!-- bridge:m-" in text else text
