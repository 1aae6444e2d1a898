"""Lists threads: groups, marks, titles without Markdown, and what a search found; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.core.keys import PlaceKey
from app.core.types import Thread
from app.server.page.view.views import (
    Cast,
    ThreadLine,
    ThreadList,
    dot_of,
    path_of,
    shown_state,
)
from app.server.page.view.work import short_name

TITLE_CHARACTERS: Final = 70
"""The longest title: what the list and the header can show."""
FOUND_CHARACTERS: Final = 90
"""Characters shown of a text that was found: two lines of the list."""
NEEDS_YOU: Final = "Needs you"
PINNED: Final = "Pinned"
RECENT: Final = "Recent"
"""The page splits this group by day, in the time zone of its reader."""

_FENCE: Final = re.compile(r"(```|~~~).*?(\1|\Z)", re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_LEAD: Final = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+|\d+[.)]\s+)+")
_MARKS: Final = re.compile(r"`+|\*\*|~~|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|^\s*(?:```|~~~)\w*")
_RULE: Final = re.compile(r"\W*")


def headline(text: str) -> str:
    """Return the first line of prose without Markdown marks, cut between two words."""
    prose = (_plain(line) for line in _FENCE.sub("", text).splitlines())
    lines = [line for line in prose if not _RULE.fullmatch(line)]
    if not lines:
        lines = [line for line in map(_plain, text.splitlines()) if line]
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


def thread_list(
    threads: Sequence[Thread],
    cast: Cast,
    *,
    current: PlaceKey | None = None,
    more: str = "",
    grouped: str = "",
) -> ThreadList:
    """Group threads; those that wait for a person come first, then pinned ones."""
    groups: dict[str, list[ThreadLine]] = {NEEDS_YOU: [], PINNED: []}
    for thread in threads:
        line = _line(thread, cast, current)
        if line.dot == "wait":
            name = NEEDS_YOU
        else:
            name = PINNED if thread.pinned else _group(thread, cast, grouped)
        groups.setdefault(name, []).append(line)
    return ThreadList(tuple((name, tuple(lines)) for name, lines in groups.items() if lines), more)


def archived_list(threads: Sequence[Thread], cast: Cast) -> ThreadList:
    """List archived threads."""
    lines = tuple(_line(thread, cast, None) for thread in threads)
    return ThreadList((("Archived" if lines else "No archived threads", lines),))


def _group(thread: Thread, cast: Cast, grouped: str) -> str:
    match grouped:
        case "agent":
            return ", ".join(cast[each.key.agent].title for each in thread.sessions) or "No agent"
        case "repository":
            return short_name(thread.repository) or "No repository"
    return RECENT


def _fallback(place: PlaceKey) -> str:
    return "Untitled thread" if place.service == "web" else place.name


def found_list(threads: Sequence[Thread], cast: Cast, words: Sequence[str]) -> ThreadList:
    """List what a search found."""
    lines = tuple(_line(thread, cast, None, words) for thread in threads)
    return ThreadList((("Found", lines) if lines else ("No thread found", ()),))


def _line(
    thread: Thread, cast: Cast, current: PlaceKey | None, words: Sequence[str] = ()
) -> ThreadLine:
    agents = ", ".join(cast[session.key.agent].title for session in thread.sessions)
    return ThreadLine(
        path=path_of(thread.place),
        title=title_of(thread),
        words=" · ".join(filter(None, (cast.label_of(thread.place.service), agents))),
        dot=dot_of((shown_state(each), each.failed, each.updated_at) for each in thread.sessions),
        current=thread.place == current,
        at=thread.last.at,
        last=thread.last.id,
        repository=short_name(thread.repository),
        pinned=thread.pinned,
        found=_excerpt(thread.found, words),
    )


def _excerpt(text: str, words: Sequence[str]) -> tuple[str, str, str]:
    """Cut a text around the first of some words: what is before it, it, and what follows."""
    plain = " ".join(map(_plain, text.split("\n")))
    spot = re.search("|".join(map(re.escape, words)), plain, re.IGNORECASE) if words else None
    if spot is None:
        return "", "", ""
    begin = max(0, spot.start() - FOUND_CHARACTERS // 3)
    before = plain[begin : spot.start()]
    if begin:
        before = "… " + before.partition(" ")[2]
    after = plain[spot.end() : begin + FOUND_CHARACTERS]
    return before, spot[0], after


def _plain(line: str) -> str:
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", _LEAD.sub("", line))).split())
