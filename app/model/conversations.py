"""Holds what is asked for and known of whole conversations."""

from __future__ import annotations

from dataclasses import dataclass

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
