"""Defines the JSON shapes of conversations in the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from app.model.conversations import Contents, last_words, path_of, title_of
from app.model.types import Thread
from app.server.shapes import EntryOut, SessionOut, state_of

if TYPE_CHECKING:
    from app.core.runtime import Runtime

TITLE_CHARACTERS = 300


class ConversationOut(BaseModel):
    """A conversation: a place with the sessions of its agents."""

    id: int
    service: str
    thread: str
    title: str
    link: str
    """Where it is on its platform, if it is on one."""
    path: str
    """Its page."""
    repository: str
    """Where its agents work: `owner/name`, `folder:/path`, `none`, or empty if that is open."""
    pinned: bool
    archived: bool
    forked_from: str | None
    updated_at: float
    last: str = ""
    """The last words in it, on one line."""
    found: str = ""
    """The text that a search found."""
    sessions: list[SessionOut]

    @classmethod
    def of(cls, thread: Thread, runtime: Runtime) -> ConversationOut:
        """Show a conversation, under the names of its agents and in the states they have now."""
        return cls(
            id=thread.number,
            service=thread.place.service,
            thread=thread.place.name,
            title=title_of(thread),
            link=thread.link,
            path=path_of(thread.place),
            repository=thread.repository,
            pinned=thread.pinned,
            archived=thread.archived,
            forked_from=str(thread.forked_from) if thread.forked_from else None,
            updated_at=thread.last.at,
            last=last_words(thread),
            found=thread.found,
            sessions=[
                SessionOut.of(each, runtime.agents.name(each.key.agent), state_of(runtime, each))
                for each in thread.sessions
            ],
        )


class ChangedConversation(BaseModel):
    """What to change: a title that agents do not change, on top of the list, out of the list."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    title: str | None = Field(default=None, min_length=1, max_length=TITLE_CHARACTERS)
    pinned: bool | None = None
    archived: bool | None = None


class NewFork(BaseModel):
    """Where to fork: after this row of the transcript, else at the end."""

    model_config = ConfigDict(extra="forbid")

    after: int | None = Field(default=None, ge=1)


class UnshippedOut(BaseModel):
    """A clone with work that is nowhere else."""

    repository: str
    branch: str
    held: str


class ContentsOut(BaseModel):
    """What is deleted with a conversation."""

    title: str
    messages: int
    turns: int
    posts: int
    """What the bridge posted on a platform; it stays there."""
    schedules: int
    files: list[str]
    """Names of attachments and of files that agents made."""
    disk_bytes: int
    """What its workspaces, clones and homes take on disk."""
    unshipped: list[UnshippedOut]

    @classmethod
    def of(cls, found: Contents) -> ContentsOut:
        """Show what would be deleted."""
        return cls(
            title=title_of(found.thread),
            messages=found.held.messages,
            turns=found.held.turns,
            posts=found.held.posts,
            schedules=found.held.schedules,
            files=[url.partition("/")[2] for url in found.held.uploads],
            disk_bytes=found.disk_bytes,
            unshipped=[
                UnshippedOut(repository=each.repository, branch=each.branch, held=each.held)
                for each in found.unshipped
            ],
        )


class ExportedEntry(EntryOut):
    """One row of a transcript, and the agent it is of."""

    agent: str | None


class ExportOut(BaseModel):
    """A whole conversation."""

    conversation: ConversationOut
    transcript: list[ExportedEntry]
