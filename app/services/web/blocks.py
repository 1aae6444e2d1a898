"""What a thread is made of on the page: blocks, each with a name of its own in the document.

`id` names the element of a block, `home` the element it is appended to when it is new. Both are
made from numbers that are stored, so that every page gives every block the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

LOG = "log"
"""The element that holds the whole thread."""


@dataclass(slots=True)
class Said:
    """What somebody said."""

    id: str
    speaker: str
    text: str
    at: float
    files: tuple[Mapping[str, str], ...] = ()
    to: tuple[str, ...] = ()
    home: str = LOG


@dataclass(slots=True)
class Note:
    """A line by the bridge."""

    id: str
    text: str
    home: str = LOG
    agent: str = ""
    failed: bool = False
    silence: bool = False
    """Whether it says why nobody answers."""
    files: tuple[Mapping[str, str], ...] = ()
    """What an agent made for people."""


@dataclass(slots=True)
class Words:
    """A piece of what an agent said or thought."""

    id: str
    kind: Literal["text", "thought"]
    text: str
    home: str


@dataclass(slots=True)
class Plan:
    """The steps of a turn as they stand now."""

    id: str
    steps: tuple[Mapping[str, str], ...]
    home: str


@dataclass(slots=True)
class Call:
    """A tool call as it stands now, and the calls that its sub-agent made."""

    id: str
    row: int
    data: Mapping[str, Any]
    home: str
    kind: str
    """What it was when it began: later words do not move it elsewhere."""
    decided: str = ""
    """Who allowed or refused it."""
    inside: list[Block] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The element that holds the calls of its sub-agent."""
        return f"{self.id}-in"

    @property
    def title(self) -> str:
        """What it is called."""
        return str(self.data.get("title") or self.data.get("kind") or "tool")

    @property
    def status(self) -> str:
        """How far it has come."""
        return str(self.data.get("status") or "pending")


@dataclass(slots=True)
class Batch:
    """Calls of one harmless kind in a row, shown as one line."""

    id: str
    home: str
    calls: list[Call] = field(default_factory=list)


@dataclass(slots=True)
class Question:
    """What an agent wants a person to decide."""

    id: str
    ask: int
    agent: str
    title: str
    options: tuple[Mapping[str, str], ...]
    call: str
    at: float
    home: str
    free_text: bool = False
    """Whether any words answer it."""
    about: str = ""
    """What it is about, word for word, where no call says it."""
    carded: bool = False
    """Whether the call it is about has a card, which also says what was decided."""
    state: str = "open"
    answer: str = ""
    note: str = ""
    closed: float = 0.0


@dataclass(slots=True)
class Head:
    """Who worked, for how long and at what cost."""

    id: str
    agent: str
    began: float
    ended: float
    home: str
    cost: float | None = None
    currency: str = ""


@dataclass(slots=True)
class Turn:
    """Everything one agent did in one turn."""

    id: str
    agent: str
    head: Head
    home: str = LOG
    body: list[Block] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The element that holds what it did."""
        return f"{self.id}-body"


Block = Said | Note | Words | Plan | Call | Batch | Question | Head | Turn
