"""Lists threads: groups, marks, titles without Markdown, and what a search found; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.model.conversations import last_words, path_of, plain, title_of
from app.model.keys import PlaceKey
from app.model.types import Thread
from app.server.page.view.views import Cast, ThreadLine, ThreadList, dot_of, shown_state
from app.server.page.view.work import short_name

FOUND_CHARACTERS: Final = 90
"""Characters shown of a text that was found: two lines of the list."""
NEEDS_YOU: Final = "Needs you"
PINNED: Final = "Pinned"
RECENT: Final = "Recent"
"""The page splits this group by day, in the time zone of its reader."""


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
        dot=dot_of(
            (
                *((shown_state(each), each.failed, each.updated_at) for each in thread.sessions),
                *((each.state, False, 0.0) for each in thread.helpers),
            )
        ),
        current=thread.place == current,
        at=thread.last.at,
        last=thread.last.id,
        said=last_words(thread),
        faces=tuple(cast[session.key.agent] for session in thread.sessions),
        repository=short_name(thread.repository),
        pinned=thread.pinned,
        found=_excerpt(thread.found, words),
    )


def _excerpt(text: str, words: Sequence[str]) -> tuple[str, str, str]:
    """Cut a text around the first of some words: what is before it, it, and what follows."""
    words_only = " ".join(map(plain, text.split("\n")))
    spot = re.search("|".join(map(re.escape, words)), words_only, re.IGNORECASE) if words else None
    if spot is None:
        return "", "", ""
    begin = max(0, spot.start() - FOUND_CHARACTERS // 3)
    before = words_only[begin : spot.start()]
    if begin:
        before = "… " + before.partition(" ")[2]
    after = words_only[spot.end() : begin + FOUND_CHARACTERS]
    return before, spot[0], after
