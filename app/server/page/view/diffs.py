r"""Prepares the lines of a change for the page: numbers, marked words, highlighted code; pure.

A line comes from an agent or from a file, so characters that hide or reorder others are written as
`\u{HEX}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal

from markupsafe import Markup

from app.model.text import Line
from app.server.page.view import highlight
from app.server.page.view.words import compare_words, mark

HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
"""Characters that show nothing, or that reorder others."""


Kind = Literal["same", "add", "del", "gap", "note"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line as it is shown."""

    kind: Kind
    html: Markup
    old: int = 0
    new: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that belong together: equal lines, or what was there and what is there now."""

    kind: Literal["same", "change", "gap", "note"]
    before: tuple[Row, ...]
    after: tuple[Row, ...] = ()


def show(text: str) -> str:
    """Write one line so that nothing in it hides or reorders anything."""
    if text.isascii() and text.isprintable():
        return text
    end = "␍" if text.endswith("\r") else ""
    return HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):X}}}", text.removesuffix("\r")) + end


def rows(lines: Iterable[Line], language: str) -> list[Row]:
    """Render lines; each part between two gaps is highlighted on its own."""
    made: list[Row] = []
    for apart, group in groupby(lines, lambda line: line.kind in {"gap", "note"}):
        if apart:
            made += (Row(each.kind, Markup.escape(show(each.text))) for each in group)
        else:
            made += _highlighted(list(group), language)
    return made


def excerpt_rows(text: str) -> list[Row]:
    """Render the lines of a change as an ask shows them, each with its sign before it."""
    signed = [(_SIGNS.get(line[:1], _SIGNS[""]), line) for line in text.split("\n")]
    made = rows([Line(kind, line[1:]) for kind, line in signed], "")
    return [
        replace(row, html=Markup.escape(line[:1]) + row.html)
        for row, (_, line) in zip(made, signed, strict=True)
    ]


def blocks(made: Sequence[Row]) -> Iterator[Block]:
    """Group rows, so that what was there and what is there now can be shown side by side."""
    for kind, group in groupby(made, lambda row: "change" if row.kind in _CHANGED else row.kind):
        each = tuple(group)
        match kind:
            case "change":
                yield from _changes(each)
            case "gap":
                yield from (Block("gap", (row,)) for row in each)
            case "note":
                yield Block("note", each)
            case _:
                yield Block("same", each)


_SIGNS: Final[dict[str, Kind]] = {"+": "add", "-": "del", "⋯": "gap", "": "same"}
_CHANGED: Final = frozenset({"add", "del"})


def _changes(group: Sequence[Row]) -> Iterator[Block]:
    """Split a run of changes where lines that were removed follow lines that were added."""
    before: list[Row] = []
    after: list[Row] = []
    for row in group:
        if row.kind == "del" and after:
            yield Block("change", tuple(before), tuple(after))
            before, after = [], []
        (before if row.kind == "del" else after).append(row)
    yield Block("change", tuple(before), tuple(after))


def _highlighted(lines: Sequence[Line], language: str) -> Iterator[Row]:
    texts = [show(line.text) for line in lines]
    sides = [[n for n, line in enumerate(lines) if line.kind != not_here] for not_here in _SIDES]
    html: dict[int, str] = {}
    for side in filter(None, sides):
        code = "\n".join(texts[n] for n in side)
        html.update(zip(side, highlight.lines(code, language), strict=True))
    marks = _marks(lines, texts)
    for n, line in enumerate(lines):
        marked = mark(html[n], marks.get(n, ()))
        yield Row(line.kind, Markup(marked), line.old, line.new)  # noqa: S704 - escaped above


_SIDES: Final = ("add", "del")
"""What is not on the old side, and not on the new one, which wins for equal lines."""


def _marks(lines: Sequence[Line], texts: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
    """Compare the words of the first removed line with those of the first added, and so on."""
    made: dict[int, list[tuple[int, int]]] = {}
    n = 0
    while n < len(lines):
        gone = _run(lines, n, "del")
        come = _run(lines, gone, "add")
        for old, new in zip(range(n, gone), range(gone, come), strict=False):
            made[old], made[new] = compare_words(texts[old], texts[new])
        n = max(come, n + 1)
    return made


def _run(lines: Sequence[Line], first: int, kind: str) -> int:
    n = first
    while n < len(lines) and lines[n].kind == kind:
        n += 1
    return n
