"""Lists threads: groups, marks, titles without Markdown, and what a search found; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from app.model.conversations import last_words, path_of, plain, title_of
from app.model.keys import PlaceKey
from app.model.types import Session, SessionState, Thread
from app.model.workspaces import FOLDER, NONE
from app.server.page.view.roster import AgentView, PageRoster

Dot = Literal["wait", "work", "limit", "fail", ""]
MARKS: Mapping[Dot, str] = {
    "wait": "Needs you",
    "work": "Working",
    "limit": "Rate-limited",
    "fail": "Failed",
    "": "Done",
}
_WORKING = {SessionState.WORKING, SessionState.QUEUED}
STOPPABLE = {
    SessionState.WORKING,
    SessionState.WAITING,
    SessionState.QUEUED,
    SessionState.LIMITED,
}
HELD = "held"
"""The state shown when nothing runs and a stop holds the queue."""
FOUND_CHARACTERS: Final = 90
"""Characters shown of a text that was found: two lines of the list."""
NEEDS_YOU: Final = "Needs you"
PINNED: Final = "Pinned"
RECENT: Final = "Recent"
"""The page splits this group by day, in the time zone of its reader."""


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """One thread in the list."""

    path: str
    title: str
    words: str
    dot: Dot
    current: bool = False
    at: float = 0.0
    last: int = 0
    """The number of its last row, by which a browser knows what is new."""
    said: str = ""
    """The last words in it."""
    faces: tuple[AgentView, ...] = ()
    """Its agents, for their pictures."""
    repository: str = ""
    """Where its agents work, as short as a chip is."""
    pinned: bool = False
    found: tuple[str, str, str] = ("", "", "")
    """What a search found in it: the text before the word, the word, and the text after it."""

    @property
    def mark(self) -> str:
        """Its state in words."""
        return MARKS[self.dot]


@dataclass(frozen=True, slots=True)
class ThreadList:
    """The list of threads, in groups."""

    groups: tuple[tuple[str, tuple[ThreadLine, ...]], ...]
    more: str = ""
    """The address of the longer list."""


def thread_list(
    threads: Sequence[Thread],
    roster: PageRoster,
    *,
    current: PlaceKey | None = None,
    more: str = "",
    grouped: str = "",
) -> ThreadList:
    """Group threads; those that wait for a person come first, then pinned ones."""
    groups: dict[str, list[ThreadLine]] = {NEEDS_YOU: [], PINNED: []}
    for thread in threads:
        line = _line(thread, roster, current)
        if line.dot == "wait":
            name = NEEDS_YOU
        else:
            name = PINNED if thread.pinned else _group(thread, roster, grouped)
        groups.setdefault(name, []).append(line)
    return ThreadList(tuple((name, tuple(lines)) for name, lines in groups.items() if lines), more)


def archived_list(threads: Sequence[Thread], roster: PageRoster) -> ThreadList:
    """List archived threads."""
    lines = tuple(_line(thread, roster, None) for thread in threads)
    return ThreadList((("Archived" if lines else "No archived threads", lines),))


def _group(thread: Thread, roster: PageRoster, grouped: str) -> str:
    match grouped:
        case "agent":
            return ", ".join(roster[each.key.agent].title for each in thread.sessions) or "No agent"
        case "repository":
            return short_name(thread.repository) or "No repository"
    return RECENT


def found_list(threads: Sequence[Thread], roster: PageRoster, words: Sequence[str]) -> ThreadList:
    """List what a search found."""
    lines = tuple(_line(thread, roster, None, words) for thread in threads)
    return ThreadList((("Found", lines) if lines else ("No thread found", ()),))


def _line(
    thread: Thread, roster: PageRoster, current: PlaceKey | None, words: Sequence[str] = ()
) -> ThreadLine:
    agents = ", ".join(roster[session.key.agent].title for session in thread.sessions)
    return ThreadLine(
        path=path_of(thread.place),
        title=title_of(thread),
        words=" · ".join(filter(None, (roster.label_of(thread.place.service), agents))),
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
        faces=tuple(roster[session.key.agent] for session in thread.sessions),
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


def dot_of(agents: Iterable[tuple[str, bool, float]]) -> Dot:
    """Mark a thread by the state of its agents, and by how the last of them ended."""
    listed = list(agents)
    seen = {state for state, _, _ in listed}
    if seen & {SessionState.WAITING, HELD}:
        return "wait"
    if seen & _WORKING:
        return "work"
    if SessionState.LIMITED in seen:
        return "limit"
    _, failed, _ = max(listed, key=lambda each: each[2], default=("", False, 0.0))
    return "fail" if failed else ""


def shown_state(session: Session, state: str = "") -> str:
    """Return the state of a session as the page shows it; `state` if it is known better."""
    held = session.held and session.state == SessionState.QUEUED
    return HELD if held else state or session.state


def stoppable(session: Session) -> bool:
    """Return whether a session has anything to stop."""
    return shown_state(session) in STOPPABLE


def short_name(written: str) -> str:
    """Shorten where a thread works to what a chip shows: the last part of a folder's path."""
    if written.startswith(FOLDER):
        return written.rstrip("/").rpartition("/")[2]
    return "" if written == NONE else written
