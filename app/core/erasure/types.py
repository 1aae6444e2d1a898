"""Values of erasing: what is to go, where it is, and what stays in spite of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from app.model.keys import SessionKey


@dataclass(frozen=True, slots=True)
class Purge:
    """A text that nothing may hold, and where it was."""

    id: str
    text: str = field(repr=False)
    keys: frozenset[SessionKey] = frozenset()
    """The conversations on platforms that held it."""
    is_done: bool = False
    sessions: frozenset[int] = frozenset()
    """The sessions that held it."""
    away: frozenset[str] = frozenset()
    """The members that have to clean their machines when they are back."""


@dataclass(frozen=True, slots=True)
class Trail:
    """Where the store holds a text."""

    rows: int = 0
    sessions: frozenset[int] = frozenset()
    keys: frozenset[SessionKey] = frozenset()
    fixed: tuple[str, ...] = ()
    """The columns that hold it and cannot be changed: other rows refer to them."""
    agents: tuple[str, ...] = ()
    """The agents whose entry or credentials hold it."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person, and what is known of them."""

    service: str
    ids: frozenset[str] = field(repr=False)
    """The platform's ids of them."""
    names: frozenset[str] = field(repr=False)
    """What they are called, unless others are called the same."""
    pseudonym: str
    messages: int = 0
    lines: frozenset[str] = field(default=frozenset(), repr=False)
    """What they wrote, by the line, if it is long enough to be told from what others write."""
    sessions: frozenset[int] = frozenset()
    """The sessions that were told something by them."""
    conversations: frozenset[str] = frozenset()
    """What the agents of those sessions call their own conversations."""
    uploads: frozenset[str] = frozenset()
    """The folders of files that only they attached."""
    away: frozenset[str] = field(default=frozenset(), compare=False)
    """The members that have to clean their machines when they are back: all else is done."""
    until: float = field(default=0.0, compare=False)
    """When those that are not back by then are given up."""


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What a search of files came across."""

    held: list[Path] = field(default_factory=list)
    """What holds the text, in its content or its name; a folder after what is in it."""
    repositories: list[Path] = field(default_factory=list)
    """Folders of git whose objects were not looked at."""
    unread: list[Path] = field(default_factory=list)
    """What could not be read."""


class Stays(StrEnum):
    """Why something still holds what was to go."""

    FILE = "file"
    UNREAD = "unread"
    STORE = "store"
    ADDRESS = "address"
    IN_USE = "in_use"
    UNSHIPPED = "unshipped"
    REMOTE = "remote"
    PLATFORM = "platform"
    UNREACHED = "unreached"
    AWAY = "away"
    COPIES = "copies"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True)
class Left:
    """Something that still holds what was to go, or may hold it."""

    why: Stays
    where: str = ""


def list_left(held: Iterable[Path], unread: Iterable[Path]) -> tuple[Left, ...]:
    """List files that still hold it, and those that may."""
    named = ((Stays.FILE, held), (Stays.UNREAD, unread))
    return tuple(Left(why, str(each)) for why, files in named for each in files)


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, and what was not."""

    rows: int = 0
    files: int = 0
    posts: int = 0
    clones: int = 0
    """Clones that were deleted, since they held it."""
    left: tuple[Left, ...] = ()
