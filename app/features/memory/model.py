"""Values of memory: notes, and an agent's daily log as entries, one per heading; pure.

People edit the same files by hand, so every text is a log: what has no heading is an entry too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from pydantic import BaseModel, ConfigDict

NOTE_CHARACTERS = 2_000
"""The longest note: five lines, with room."""
_HEADING = re.compile(r"## (\d\d:\d\d)(?: · session (\d{1,18}))?(?: · note (\d{1,18}))?[ \t]*")
_ID_CHARACTERS = 12
"""Enough to tell the entries of one day apart."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """One entry of a daily log."""

    day: str
    text: str
    time: str = ""
    session: int | None = None
    """The session it came from; None if a person wrote it."""
    note: int | None = None

    @property
    def id(self) -> str:
        """Tells the entries of a day apart; another one once it is changed."""
        return sha256(_format(self).encode()).hexdigest()[:_ID_CHARACTERS]


class NoteOut(BaseModel):
    """One thing that an agent remembers."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    """Tells the notes of a day apart; another one once the note is changed."""
    day: str
    time: str
    """When it was noted, in UTC; empty if a person wrote it by hand."""
    session: int | None
    """The session it came from."""
    text: str


def parse_log(day: str, text: str) -> tuple[Remembered, ...]:
    """Read the entries of a day."""
    entries: list[Remembered] = []
    current, lines = Remembered(day, ""), list[str]()
    for line in (*text.splitlines(), None):
        found = _HEADING.fullmatch(line) if line is not None else None
        if line is not None and found is None:
            lines.append(line)
            continue
        if words := "\n".join(lines).strip():
            entries.append(replace(current, text=words))
        if found is not None:
            time, session, note = found.groups()
            current = Remembered(day, "", time, _number(session), _number(note))
            lines = []
    return tuple(entries)


def format_log(entries: Sequence[Remembered]) -> str:
    """Write the entries of a day."""
    return "\n".join(map(_format, entries))


def add_entry(text: str, entry: Remembered) -> str:
    """Add an entry to a day's log, unless its note is there already."""
    entries = parse_log(entry.day, text)
    if entry.note is not None and any(each.note == entry.note for each in entries):
        return text
    return format_log((*entries, entry))


def drop_entry(day: str, text: str, entry_id: str) -> str:
    """Leave an entry out of a day's log."""
    return format_log([each for each in parse_log(day, text) if each.id != entry_id])


def _format(entry: Remembered) -> str:
    if not entry.time:
        return f"{entry.text}\n"
    session = f" · session {entry.session}" if entry.session is not None else ""
    note = f" · note {entry.note}" if entry.note is not None else ""
    # A line of the text must not begin an entry of its own.
    lines = (f" {line}" if line.startswith("## ") else line for line in entry.text.splitlines())
    return f"## {entry.time}{session}{note}\n" + "\n".join(lines) + "\n"


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
