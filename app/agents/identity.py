"""Reads an agent's IDENTITY.md: who it is to people, and the text it is told; pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from app.config.fields import is_emoji

COLOURS: Final = ("orange", "teal", "indigo", "purple", "green", "pink", "yellow", "blue")
"""In the order of the page's style."""
_KEYS: Final = ("name", "emoji", "creature", "vibe", "colour")
_FENCE: Final = "---"
_LONGEST: Final = 200
"""As long as a display name may be."""
_QUOTES: Final = ('"', "'")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an agent is: the keys of its front matter, and the text below."""

    name: str = ""
    emoji: str = ""
    creature: str = ""
    vibe: str = ""
    colour: str = ""
    text: str = ""
    problem: str = ""
    """The first thing that is wrong, with its line and the remedy."""

    @property
    def words(self) -> str:
        """What the agent is told of itself."""
        facts = (
            f"Your name is {self.name}." if self.name else "",
            f"You appear as: {self.creature}." if self.creature else "",
            f"Your manner: {self.vibe}." if self.vibe else "",
            f"Your emoji is {self.emoji}." if self.emoji else "",
        )
        return "\n\n".join(filter(None, (" ".join(filter(None, facts)), self.text)))


def read_identity(text: str) -> Identity:
    """Read the file; a line that is wrong is left out, and the problem names the first one."""
    lines = text.lstrip("\ufeff").split("\n")
    if lines[0].rstrip() != _FENCE:
        return Identity(text=text.strip())
    ends = [at for at, line in enumerate(lines) if at and line.rstrip() == _FENCE]
    if not ends:
        return Identity(
            text=text.strip(),
            problem=f"Line 1: the front matter is not closed. Write a line {_FENCE} below it.",
        )
    values: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(lines[1 : ends[0]], start=2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, value = _split(line)
        if problem := _check(key, value, values):
            problems.append(f"Line {number}: {problem}")
        else:
            values[key] = value
    found = Identity(**values, text="\n".join(lines[ends[0] + 1 :]).strip())
    return replace(found, problem=problems[0] if problems else "")


def _split(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    value = value.strip()
    if len(value) > 1 and value[0] in _QUOTES and value[-1] == value[0]:
        value = value[1:-1]
    return key.strip(), value


def _check(key: str, value: str, known: dict[str, str]) -> str:
    """Say what is wrong with a line, and what to write instead."""
    if key not in _KEYS:
        return f"this is none of the keys. Write one of {', '.join(_KEYS)}, such as `name: Ada`."
    if key in known:
        return f"{key} is there twice. Remove one of them."
    if key == "emoji":
        return "" if is_emoji(value) else "emoji is not one emoji. Write one, such as \N{FOX FACE}."
    if not value or len(value) > _LONGEST or not value.isprintable():
        return f"{key} needs 1 to {_LONGEST} plain characters. Write `{key}: a few words`."
    if key == "colour" and value not in COLOURS:
        return f"colour is unknown. Write one of {', '.join(COLOURS)}."
    return ""
