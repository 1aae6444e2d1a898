"""What stands inside a tool card: what went in, what came out, which lines changed; pure.

Everything shown here comes from an agent or from a file, so signs that would hide or reorder other
signs are made visible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal

LINES = 60
"""What a card shows at first: a screen. The rest is one click away."""
CHARACTERS = 8_000
DIFF_LINES = 200
CONTEXT_LINES = 3
"""Unchanged lines around a change, as everywhere."""
COMPARED = 1_000_000
"""Pairs of lines up to which two texts are compared: some tenths of a second."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
_WORKSPACE = re.compile(r"^.*/workspaces/\d+-[a-z0-9-]+/")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of a text, and how many lines are left out."""

    text: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a change."""

    kind: Literal["same", "add", "del", "gap"]
    text: str


_GAP = Line("gap", "⋯")


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after, as lines."""

    path: str
    lines: tuple[Line, ...]
    added: int
    removed: int
    left: int = 0


def visible(text: str) -> str:
    """Take colours out and make signs visible that hide or reorder others."""
    return _HIDDEN.sub("\N{REPLACEMENT CHARACTER}", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def short_path(path: str) -> str:
    """Name a file as it stands in its workspace."""
    return visible(_WORKSPACE.sub("", path))


def excerpt(text: str, *, whole: bool = False) -> Excerpt:
    """Show the beginning of a long text."""
    text = visible(text).strip("\n")
    if whole:
        return Excerpt(text)
    lines = text.split("\n")
    shown = "\n".join(lines[:LINES])
    if len(shown) <= CHARACTERS:
        return Excerpt(shown, max(0, len(lines) - LINES))
    return Excerpt(shown[:CHARACTERS], max(1, len(lines) - shown[:CHARACTERS].count("\n") - 1))


def given(value: Any) -> str:
    """Write down what a tool was given: a command alone, else one line per name."""
    if value is None or value == {} or value == "":
        return ""
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else _json(value)
    command = value.get("command")
    if isinstance(command, str):
        return command
    if isinstance(command, list):
        return " ".join(map(str, command))
    return "\n".join(
        f"{name}: {each if isinstance(each, str) else _json(each)}" for name, each in value.items()
    )


def change(diff: Mapping[str, Any], *, whole: bool = False) -> Change:
    """Compare a file before and after."""
    old = _lines(diff.get("old"))
    new = _lines(diff.get("new"))
    lines = _compared(old, new)
    most = len(lines) if whole else DIFF_LINES
    return Change(
        path=short_path(str(diff.get("path", ""))),
        lines=tuple(Line(line.kind, visible(line.text)) for line in lines[:most]),
        added=sum(line.kind == "add" for line in lines),
        removed=sum(line.kind == "del" for line in lines),
        left=max(0, len(lines) - most),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _lines(text: str | None) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _compared(old: list[str], new: list[str]) -> list[Line]:
    """Compare what lies between the equal beginnings and the equal ends of two texts."""
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    middle_old, middle_new = old[first : len(old) - last], new[first : len(new) - last]
    lines = [Line("same", text) for text in old[:first]]
    lines += _middle(middle_old, middle_new)
    lines += [Line("same", text) for text in old[len(old) - last :]]
    return _near_changes(lines)


def _common(one: list[str], other: list[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _middle(old: list[str], new: list[str]) -> list[Line]:
    if len(old) * len(new) > COMPARED:
        return [Line("del", text) for text in old] + [Line("add", text) for text in new]
    lines: list[Line] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            lines += [Line("same", text) for text in old[a:b]]
        else:
            lines += [Line("del", text) for text in old[a:b]]
            lines += [Line("add", text) for text in new[c:d]]
    return lines


def _near_changes(lines: list[Line]) -> list[Line]:
    """Leave out what lies far from any change."""
    runs = [(same, list(run)) for same, run in groupby(lines, lambda line: line.kind == "same")]
    kept: list[Line] = []
    for number, (same, run) in enumerate(runs):
        after = run[:CONTEXT_LINES] if number else []
        before = run[-CONTEXT_LINES:] if number < len(runs) - 1 else []
        if not same or (after and before and len(run) <= 2 * CONTEXT_LINES):
            kept += run
        else:
            kept += [*after, *([_GAP] if after and before else []), *before]
    return kept
