"""Whole conversations: which are listed, titles and attributes, what is held of them; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.errors import Conflict
from app.model import wording
from app.model.keys import PlaceKey
from app.model.types import Thread
from app.model.workspaces import Unshipped, WorkspaceView


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which conversations to list."""

    agent: str | None = None
    """Only those with a session of this agent."""
    repository: str | None = None
    """Only those that work there: `owner/name`, `folder:<path>` or `none`."""
    archived: bool | None = False
    """Only archived ones, only others, or both."""
    pinned_first: bool = False
    service: str | None = None
    state: str | None = None
    """Only those with a session in this state."""
    since: float | None = None
    """Only those in which something happened at this time or later."""
    before: int | None = None
    """Only those whose last row of the transcript is before this one."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the store holds of a conversation."""

    places: tuple[PlaceKey, ...]
    """Its place, and others that are surfaces of its sessions alone."""
    sessions: tuple[int, ...]
    """Those in its place, and those of agents that work for them."""
    children: tuple[int, ...] = ()
    """The latter alone."""
    conversations: tuple[str, ...] = ()
    """How agents name their own conversations."""
    elsewhere: PlaceKey | None = None
    """The conversation that owns a session which is also shown here."""
    messages: int = 0
    turns: int = 0
    posts: int = 0
    """What was posted on platforms."""
    schedules: int = 0
    uploads: tuple[str, ...] = ()
    """Addresses of files that no other conversation names."""
    shared: frozenset[str] = frozenset()
    """Folders of files that others name."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is deleted with a conversation, and what is left elsewhere."""

    thread: Thread
    held: Holdings
    disk_bytes: int
    """What its sessions take on disk: workspaces, clones and homes."""
    unshipped: tuple[Unshipped, ...]
    """Work that is nowhere else."""
    workspaces: tuple[WorkspaceView, ...]
    """Where its agents work; what was pushed and a person's own folder stay."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A session of a fork, and the one it was copied from."""

    session: int
    origin: int
    agent: str
    acp_session_id: str | None = None
    """The conversation of the original's agent, if nothing was said in it after the fork."""


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


@dataclass(frozen=True, slots=True)
class ListFilter:
    """What a list is to contain; what is None does not matter."""

    agent: str | None = None
    """Only what belongs to the agent with this id."""
    service: str | None = None
    """Only what is on this service."""
    state: str | None = None
    since: float | None = None
    """Only what happened at this time or later, in seconds since 1970."""


EVERYTHING: Final = ListFilter()


MOST_KEYS: Final = 64
MOST_BYTES: Final = 16 * 1024
"""All attributes of a session together, as JSON: they are read with it."""
KEY: Final = r"^[a-z0-9_.-]{1,64}$"


def merge_attributes(known: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with some changed; None removes one.

    Raises:
        Conflict: they are too many, or too large.
    """
    merged = {key: value for key, value in {**known, **changes}.items() if value is not None}
    if len(merged) > MOST_KEYS:
        raise Conflict(wording.TOO_MANY_ATTRIBUTES.format(most=MOST_KEYS))
    if len(json.dumps(merged, ensure_ascii=False).encode()) > MOST_BYTES:
        raise Conflict(wording.ATTRIBUTES_TOO_LARGE.format(most=MOST_BYTES))
    return merged
