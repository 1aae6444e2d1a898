"""Values of erasing: what is to go, where it is, and what stays in spite of it; and their JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from app.model.keys import SessionKey
from app.vault.finding import ExactIndex


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


FORGOTTEN = "[forgotten]"
"""What is shown in place of their words."""


class Marks:
    """What a text is recognised by as a person's: their names, whole, and lines that they wrote.

    It is used as a vault is for secrets.
    """

    is_folded = False

    def __init__(self, person: Person) -> None:
        self._pseudonym = person.pseudonym
        names = sorted(_forms({*person.ids, *person.names}), key=len, reverse=True)
        words = "|".join(map(re.escape, names))
        self._names = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
        self._lines = ExactIndex.of(_forms(person.lines)) if person.lines else None

    def contains(self, text: str) -> bool:
        """Tell whether a text names or quotes the person."""
        return self._names.search(text) is not None or bool(self._quotes(text))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where a text names or quotes the person."""
        return [found.span() for found in self._names.finditer(text)] + self._quotes(text)

    def redact(self, text: str) -> str:
        """Take quotes out, and put the pseudonym in the place of names."""
        for start, end in sorted(self._quotes(text), reverse=True):
            text = text[:start] + FORGOTTEN + text[end:]
        return self._names.sub(self._pseudonym, text)

    def _quotes(self, text: str) -> list[tuple[int, int]]:
        found = [] if self._lines is None else sorted(self._lines.spans(text))
        # One line may be the beginning of another one.
        return [each for at, each in enumerate(found) if at == 0 or each[0] >= found[at - 1][1]]

    def redact_json(self, value: Any) -> Any:
        """Take quotes and names out of a JSON value."""
        match value:
            case str():
                return self.redact(value)
            case dict():
                return {key: self.redact_json(item) for key, item in value.items()}
            case list() | tuple():
                return [self.redact_json(item) for item in value]
            case _:
                return value


def _forms(known: Iterable[str]) -> set[str]:
    """Add how a text is read from a file, one character per byte, and as it is written in JSON."""
    plain = {each for each in known if each}
    escaped = {
        json.dumps(each, ensure_ascii=only)[1:-1] for each in plain for only in (True, False)
    }
    every = plain | escaped
    return every | {each.encode(errors="replace").decode("latin-1") for each in every}


WORDS = {
    Stays.FILE: "A file holds it and cannot be changed. Delete it by hand",
    Stays.UNREAD: "This cannot be read. Look into it by hand",
    Stays.STORE: "The files of the store could not be rewritten. Purge it again later",
    Stays.ADDRESS: "It is part of an id or an address. Delete the conversation that has it",
    Stays.IN_USE: "An agent's entry or credentials hold it. Replace it there",
    Stays.UNSHIPPED: "A clone or repository holds it, with work that is nowhere else. Ship that "
    "work, or purge it again with --discard to delete both",
    Stays.REMOTE: "The remote had it, in its history or the name of a branch, and brings it back "
    "with the next fetch. Rewrite or delete it there, then purge it again",
    Stays.PLATFORM: "A message or its history of edits holds it, which the agent cannot change. "
    "Ask its author to delete it",
    Stays.UNREACHED: "What was posted here could not be changed. Look at it on the platform",
    Stays.THEIRS: "What they wrote on the platforms stays there, and so do commits with their name "
    "and settings that list them. Delete it there, and take them out of ALLOWED_USERS",
    Stays.AWAY: "This machine was not reached. It cleans its disk when its bridge runs again; if "
    "it never does, delete its DATA_DIR",
    Stays.COPIES: "What left this machine before is out of reach: models, logs, notifications and "
    "e-mails, backups, compressed files. Replace the secret where it is used",
}


class NewPurge(BaseModel):
    """A text to be purged."""

    text: SecretStr
    discard: bool = False
    """Whether clones that hold it are deleted also with work that is nowhere else."""


class LeftOut(BaseModel):
    """Something that still holds what was to go, or may hold it."""

    why: Stays
    where: str
    words: str

    @classmethod
    def of(cls, left: Left) -> LeftOut:
        """Show it."""
        return cls(why=left.why, where=left.where, words=WORDS[left.why])


class ErasedOut(BaseModel):
    """What was erased, and what was not."""

    rows: int
    files: int
    posts: int
    clones: int
    left: list[LeftOut]

    @classmethod
    def of(cls, erased: Erased) -> ErasedOut:
        """Show it."""
        return cls(
            rows=erased.rows,
            files=erased.files,
            posts=erased.posts,
            clones=erased.clones,
            left=[LeftOut.of(each) for each in erased.left],
        )


class PersonOut(BaseModel):
    """A person who said something."""

    service: str
    id: str
    name: str
    messages: int

    @classmethod
    def of(cls, person: Person) -> PersonOut:
        """Show them."""
        (known,), (name,) = person.ids, person.names
        return cls(service=person.service, id=known, name=name, messages=person.messages)
