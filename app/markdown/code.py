"""Writes text as Markdown code that shows every character and that nothing in it can end; pure."""

from __future__ import annotations

import re

_TICKS = re.compile("`+")


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


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
