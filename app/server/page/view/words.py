"""Finds the words that differ between two versions of a line, and marks them in its HTML; pure.

Lines come from agents: long ones are not compared word by word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

LINE_CHARACTERS: Final = 1_000
"""The longest line that is compared: people do not read longer ones word by word."""
WORDS: Final = 80
"""Words in the middle of a line that are compared one by one; of more, all are marked."""
ALIKE: Final = 0.3
"""How much of two lines must be equal: marks in lines that have little in common say nothing."""

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_PIECE: Final = re.compile(r"(<[^>]*>)|(&[#\w]+;)|([^<&]+)")

Range = tuple[int, int]


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
