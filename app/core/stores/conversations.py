"""Port for conversations: the list of places, and what people do with a whole one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.model.keys import PlaceKey
from app.model.notes import Note
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


class ConversationStore(Protocol):
    """Conversations as a whole."""

    async def list(self, wanted: Wanted, *, limit: int) -> Sequence[Thread]:
        """List conversations, the one where something happened last first."""
        ...

    async def search(self, words: Sequence[str], wanted: Wanted, *, limit: int) -> Sequence[Thread]:
        """List those whose title or recent text has all these words, most recent first."""
        ...

    async def thread(self, place: PlaceKey) -> Thread | None:
        """Read one place as the list shows it."""
        ...

    def find(self, number: int) -> PlaceKey | None:
        """Tell which place has a number."""
        ...

    async def rename(self, place: PlaceKey, title: str, note: Note) -> None:
        """Give a place a title that agents do not change, and note that there."""
        ...

    async def pin(self, place: PlaceKey, *, pinned: bool) -> None:
        """Keep a place on top of the list, or no longer."""
        ...

    async def archive(self, place: PlaceKey, *, archived: bool) -> None:
        """Take a place out of the list, or put it back."""
        ...

    async def holdings(self, place: PlaceKey) -> Holdings | None:
        """Tell what is stored of a conversation; None if there is none."""
        ...

    async def clear(self, place: PlaceKey, note: Note) -> Sequence[int] | None:
        """Delete what was said, and note that; returns the posts to send.

        None if a turn is open: nothing was changed then.
        """
        ...

    async def fork(
        self, place: PlaceKey, new: PlaceKey, *, after: int | None, title: str
    ) -> Sequence[Copied] | None:
        """Copy a conversation up to a row into a new place; None if nothing was said up to it."""
        ...

    async def say(self, place: PlaceKey, note: Note) -> None:
        """Note in a place what happened to it."""
        ...

    async def adopt(self, session: int, acp_session_id: str) -> None:
        """Let a session that has not begun continue with an agent's conversation."""
        ...

    async def doom(self, place: PlaceKey) -> None:
        """Mark a conversation as being deleted: from now on it is not listed."""
        ...

    async def unused(self, before: float, *, limit: int) -> Sequence[PlaceKey]:
        """List conversations of people in which nothing happened since a time; not pinned ones."""
        ...

    async def doomed(self) -> Sequence[PlaceKey]:
        """List the conversations whose deletion has not been finished."""
        ...

    async def erase(self, place: PlaceKey) -> bool:
        """Delete everything that is stored of a conversation; False if a turn is open."""
        ...

    async def compact(self) -> None:
        """Overwrite in the store's files what was deleted from it."""
        ...
