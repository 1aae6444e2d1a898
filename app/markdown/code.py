"""Writes text as Markdown code that shows every character and that nothing in it can end; pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

_TICKS = re.compile("`+")
_FENCED = re.compile(
    # Backticks after those of a fence make it a span, behind which words follow.
    r"^[ \t>]*(?P<bar>`{3,}(?=[^\n`]*$)|~{3,})[^\n]*\n"
    r".*?(?:^[ \t>]*(?P=bar)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)


def fence(text: str, language: str = "") -> str:
    """Write lines as a code block."""
    ticks = "`" * max(3, _longest(text) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def span(text: str) -> str:
    """Write one line as code among other words."""
    ticks = "`" * (_longest(text) + 1)
    # One space at either end is not shown, so a backtick or a space there needs another.
    pad = " " if text[:1] in {"`", " "} or text[-1:] in {"`", " "} else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def find_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield where code begins and ends, fenced or in a line, in a time that grows with the text."""
    at = 0
    for block in _FENCED.finditer(text):
        yield from _find_spans(text, at, block.start())
        yield block.span()
        at = block.end()
    yield from _find_spans(text, at, len(text))


def _find_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the code within lines: between two runs of backticks of one length."""
    while begin < end:
        after = text.find("\n", begin, end) + 1 or end
        runs = [found.span() for found in _TICKS.finditer(text, begin, after)]
        closing: dict[int, list[int]] = defaultdict(list)
        for start, stop in reversed(runs):
            closing[stop - start].append(stop)
        done = begin
        for start, stop in runs:
            same = closing[stop - start]
            same.pop()
            if start >= done and same:
                done = same[-1]
                yield start, done
        begin = after


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
