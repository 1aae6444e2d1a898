"""Names conversations for people: titles without Markdown, and the paths of their pages; pure."""

from __future__ import annotations

import re
from typing import Final

from app.model.keys import PlaceKey
from app.model.types import Thread

TITLE_CHARACTERS: Final = 70
"""The longest title: what the list and the header can show."""

_FENCE: Final = re.compile(r"(```|~~~).*?(\1|\Z)", re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_LEAD: Final = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+|\d+[.)]\s+)+")
_MARKS: Final = re.compile(r"`+|\*\*|~~|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|^\s*(?:```|~~~)\w*")
_RULE: Final = re.compile(r"\W*")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._~:/-]")


def headline(text: str) -> str:
    """Return the first line of prose without Markdown marks, cut between two words."""
    prose = (plain(line) for line in _FENCE.sub("", text).splitlines())
    lines = [line for line in prose if not _RULE.fullmatch(line)]
    if not lines:
        lines = [line for line in map(plain, text.splitlines()) if line]
    line = lines[0] if lines else ""
    if len(line) <= TITLE_CHARACTERS:
        return line
    whole = line[:TITLE_CHARACTERS].rpartition(" ")[0] or line[:TITLE_CHARACTERS]
    return whole.rstrip(" ,;:.") + " …"


def title_of(thread: Thread) -> str:
    """Return the title that a person gave a thread, else an agent, else its first message."""
    # An agent that takes the beginning of its prompt shows the line of the bridge.
    given = [each.title for each in thread.sessions if not each.title.startswith("[")]
    titles = map(headline, [*given, thread.title])
    return thread.named or next(filter(None, titles), "") or _fallback(thread.place)


def last_words(thread: Thread) -> str:
    """Return what was said last in a thread, on one line; empty if a tool or the bridge spoke."""
    return headline(thread.last.text) if thread.last.kind in {"message", "text"} else ""


def path_of(place: PlaceKey) -> str:
    """Return the path of a thread's page."""
    return f"/t/{place.service}/{in_path(place.name)}"


def in_path(name: str) -> str:
    """Escape a name for use in a path."""
    return _UNSAFE.sub(lambda sign: "".join(f"%{byte:02X}" for byte in sign[0].encode()), name)


def plain(line: str) -> str:
    """Remove the Markdown marks of a line."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", _LEAD.sub("", line))).split())


def _fallback(place: PlaceKey) -> str:
    return "Untitled thread" if place.service == "web" else place.name
