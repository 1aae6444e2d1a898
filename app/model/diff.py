"""Compares a file before and after, line by line; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

CONTEXT_LINES = 3
"""Unchanged lines around a change, as in most diff tools."""
COMPARED = 1_000_000
"""Pairs of lines up to which two texts are compared: some tenths of a second of work."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a change, with its number before and after; 0 where it has none."""

    kind: Literal["same", "add", "del", "gap", "note"]
    text: str
    old: int = 0
    new: int = 0


_GAP = Line("gap", "⋯")


def compare(old: str | None, new: str | None) -> list[Line]:
    """List the lines that changed, with those around them."""
    return _compare_lines(_lines(old), _lines(new))


def _lines(text: str | None) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _compare_lines(old: list[str], new: list[str]) -> list[Line]:
    """Compare what is between the equal beginnings and the equal ends of two texts."""
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    middle_old, middle_new = old[first : len(old) - last], new[first : len(new) - last]
    lines = [Line("same", text) for text in old[:first]]
    lines += _middle(middle_old, middle_new)
    lines += [Line("same", text) for text in old[len(old) - last :]]
    return _near_changes(list(_number(lines)))


def _number(lines: list[Line]) -> Iterator[Line]:
    old = new = 0
    for line in lines:
        old, new = old + (line.kind != "add"), new + (line.kind != "del")
        yield Line(line.kind, line.text, old * (line.kind != "add"), new * (line.kind != "del"))


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
    """Leave out lines far from any change."""
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
