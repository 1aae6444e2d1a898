r"""Prepares the lines of a change for the page: numbers, marked words, highlighted code; pure.

A line comes from an agent or from a file, so characters that hide or reorder others are written as
`\u{HEX}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final, Literal

from markupsafe import Markup

from app.model.text import Line
from app.server.page.view import highlight
from app.server.page.view.highlight import show

LINE_CHARACTERS: Final = 1_000
"""The longest line that is compared: people do not read longer ones word by word."""
WORDS: Final = 80
"""Words in the middle of a line that are compared one by one; of more, all are marked."""
ALIKE: Final = 0.3
"""How much of two lines must be equal: marks in lines that have little in common say nothing."""

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_PIECE: Final = re.compile(r"(<[^>]*>)|(&[#\w]+;)|([^<&]+)")

Range = tuple[int, int]
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


def compare_words(old: str, new: str) -> tuple[list[Range], list[Range]]:
    """Return the parts of each line that the other one does not have."""
    if max(len(old), len(new)) > LINE_CHARACTERS:
        return [], []
    before, after = _WORD.findall(old), _WORD.findall(new)
    first = _common(before, after)
    last = _common(before[first:][::-1], after[first:][::-1])
    middles = before[first : len(before) - last], after[first : len(after) - last]
    same, ranges = _compare(*middles)
    same += sum(len(word.strip()) for word in (*before[:first], *before[len(before) - last :]))
    if same < ALIKE * max(len("".join(each.split())) for each in (old, new)):
        return [], []
    start = sum(map(len, before[:first]))
    return tuple([(start + a, start + b) for a, b in each] for each in ranges)  # type: ignore[return-value]  # it has two


def mark(html: str, ranges: Sequence[Range]) -> str:
    """Mark parts of a line, given by the positions of their characters, in its HTML."""
    if not ranges:
        return html
    made: list[str] = []
    position = 0
    for tag, entity, text in _PIECE.findall(html):
        if tag:
            made.append(tag)
        elif entity:
            made.append(_marked(entity, position, ranges, whole=True))
            position += 1
        else:
            made.append(_marked(text, position, ranges))
            position += len(text)
    return "".join(made).replace("</mark><mark>", "")


def _marked(text: str, position: int, ranges: Sequence[Range], *, whole: bool = False) -> str:
    made: list[str] = []
    done = 0
    length = 1 if whole else len(text)
    for start, end in ranges:
        begin, stop = max(start - position, done), min(end - position, length)
        if begin >= stop:
            continue
        if whole:
            return f"<mark>{text}</mark>"
        made += (text[done:begin], "<mark>", text[begin:stop], "</mark>")
        done = stop
    return "".join([*made, text[done:]])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _compare(old: list[str], new: list[str]) -> tuple[int, tuple[list[Range], list[Range]]]:
    """Compare words; returns how many characters are equal, and the ranges that are not."""
    if max(len(old), len(new)) > WORDS:
        return 0, (_ranges(old, [(0, len(old))]), _ranges(new, [(0, len(new))]))
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    same = sum(len(w.strip()) for tag, a, b, _, _ in codes if tag == "equal" for w in old[a:b])
    differing = [code for code in codes if code[0] != "equal"]
    return same, (
        _ranges(old, [(a, b) for _, a, b, _, _ in differing]),
        _ranges(new, [(a, b) for _, _, _, a, b in differing]),
    )


def _ranges(words: list[str], spans: Sequence[Range]) -> list[Range]:
    """Turn positions of words into positions of characters, joined across mere space."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    made: list[Range] = []
    for a, b in spans:
        if a == b:
            continue
        if made and not "".join(words)[made[-1][1] : starts[a]].strip():
            made[-1] = (made[-1][0], starts[b])
        else:
            made.append((starts[a], starts[b]))
    return made
