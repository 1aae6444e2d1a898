"""Cuts text into messages, and keeps Slack from reading markup or mentions in it; pure."""

from __future__ import annotations

import re
from typing import Final

from app.markdown.links import disarm
from app.model.visible import reveal_line

PART_CHARACTERS: Final = 10_000
"""Text of one message: Slack ends near 12,000, with everything that the message says."""
LINE_CHARACTERS: Final = 2_000
"""How far back to look for the end of a line, or else of a word, where a text is cut."""
UNFINISHED_CHARACTERS: Final = 600
"""The longest half of a link that is held back."""
RINGING: Final = re.compile(r"<(?=(?:!(?:channel|everyone|group|here|subteam)|@[UWB][A-Z0-9]+)\b)")
_UNFINISHED: Final = re.compile(
    r"<(?:[!@][^>\s]{0,40})?$|!?\[[^\]\n]{0,80}(?:\](?:\([^)\s]{0,500})?)?$|!$"
)
"""Half a mention, or half a link: it may still become false."""
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_HALF_ESCAPED: Final = re.compile(r"&[a-z]{0,3}$")
_ENTITY: Final = re.compile("&(?=(?:amp|lt|gt);)")
_WORD_JOINER: Final = "\u2060"
_WIDEST: Final = 5
"""The most characters that one becomes when it is escaped: `&amp;`."""


def defang(text: str) -> str:
    """Turn text that would notify a channel or a person into plain text."""
    return RINGING.sub(f"<{_WORD_JOINER}", text)


def escape(text: str) -> str:
    """Escape text so that Slack reads no markup in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def literal(text: str) -> str:
    """Keep Slack from reading `&lt;` as `<`."""
    return _ENTITY.sub(r"\\u{26}", text)


def line(text: str, size: int) -> str:
    """Put a title onto one line, to be shown as it is."""
    return literal(defang(reveal_line(text)[:size]))


def weigh(text: str) -> int:
    """Measure a text as Slack stores it: escaped."""
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def head(escaped: str, size: int) -> str:
    """Take the beginning of escaped text, and never half an entity."""
    cut = escaped[:size]
    return _HALF_ESCAPED.sub("", cut) if len(escaped) > size else cut


def safe_end(text: str) -> int:
    """Tell how much of a text can be shown while more may follow: no half mention or link."""
    begin = max(0, len(text) - UNFINISHED_CHARACTERS)
    match = _UNFINISHED.search(text[begin:])
    return len(text) if match is None else begin + match.start()


def part_end(text: str, start: int, shown: int, size: int) -> int | None:
    """Tell where the message that begins at `start` must end; None if the rest fits.

    Text that is already shown, up to `shown`, stays in it.
    """
    if weigh(text[start:]) <= size:
        return None
    last = start + size
    while (over := weigh(text[start:last]) - size) > 0:
        last -= -(-over // _WIDEST)
    last = max(last, start + 1)
    first = max(shown, last - LINE_CHARACTERS, start + 1)
    gaps = (text.rfind(gap, first, last) for gap in ("\n", " "))
    return max(shown, next((gap + 1 for gap in gaps if gap >= 0), last))


def tail(text: str, start: int, size: int) -> int:
    """Tell where the last part of a text begins that fits into one message."""
    begin = start
    while (over := weigh(text[begin:]) - size) > 0:
        begin += -(-over // _WIDEST)
    gap = text.find("\n", begin, begin + LINE_CHARACTERS) if begin > start else -1
    return gap + 1 if gap >= 0 else begin


def opening(text: str, start: int) -> str:
    """Reopen the code block in which a message begins."""
    fence = _fence_at(text, start)
    return f"{fence}\n" if fence else ""


def closing(text: str, end: int) -> str:
    """Close the code block in which a message ends."""
    fence = _fence_at(text, end)
    if not fence:
        return ""
    marks = fence[: _width(fence)]
    return f"{marks}\n" if text[:end].endswith("\n") else f"\n{marks}\n"


def piece(text: str, start: int, end: int | None) -> str:
    """Cut one message out of a text, complete in itself."""
    cut = text[start:end]
    after = "" if end is None else closing(text, end)
    return defang(disarm(f"{opening(text, start)}{cut}{after}")) if cut else ""


def _width(fence: str) -> int:
    return len(fence) - len(fence.lstrip(fence[0]))


def _fence_at(text: str, end: int) -> str:
    """Return the line that opened the code block in which a text is at `end`, if any."""
    fence = ""
    for match in _FENCE.finditer(text, 0, end):
        marks, rest = match.groups()
        if not fence:
            fence = match.group().strip()
        elif fence.startswith(marks[0] * 3) and not rest.strip() and len(marks) >= _width(fence):
            fence = ""
    return fence
