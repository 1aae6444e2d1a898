"""What goes out: one outbound message in neutral words, and what a platform made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.core.keys import SessionKey
from app.core.updates import AskOption, PlanStep

Verbosity = Literal["quiet", "normal", "full"]


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One tool call as a place shows it."""

    call: str
    title: str
    status: str = "pending"
    kind: str = ""
    output: str = ""
    """The beginning of what it gave back."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing worth knowing about a turn: the branch, the PR, the cost, the page."""

    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file that an agent made for people."""

    name: str
    media_type: str
    url: str
    """Where it is kept, within the uploads."""
    size: int
    link: str = ""
    """Where the page gives it out; nothing if only this machine could open that."""


@dataclass(frozen=True, slots=True)
class PostContent:
    """What a post says, before any platform's form."""

    kind: Literal["turn", "ask", "notice", "files"]
    state: str = ""
    text: str = ""
    note: str = ""
    """One line by the bridge itself."""
    plan: tuple[PlanStep, ...] = ()
    tools: tuple[ToolLine, ...] = ()
    thought: str = ""
    """The end of what the agent thought last."""
    facts: tuple[Fact, ...] = ()
    ask: int | None = None
    options: tuple[AskOption, ...] = ()
    free_text: bool = False
    """Whether any words answer the ask, not only one of the options."""
    url: str = ""
    """What the ask wants a person to open; the text has it too."""
    verbosity: Verbosity | None = None
    """How much the place wants to see; None: whatever is usual there."""
    asker: str = ""
    """The platform's id of the person whose words these answer."""
    message_id: str = ""
    """The message that these answer."""
    files: tuple[MadeFile, ...] = ()
    """What the agent made for people; of a post of the kind `files` all that there is to it."""


@dataclass(frozen=True, slots=True)
class NewPost:
    """A post to be created; the key makes sure that it is created once."""

    key: str
    target: SessionKey
    content: PostContent
    session: int | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """One outbound message as it is kept."""

    id: int
    target: SessionKey
    marker: str
    content: PostContent
    state: Literal["new", "open", "closing", "done", "failed"]
    remote_id: str | None = None
    consumed: int = 0
    session: int | None = None


@dataclass(frozen=True, slots=True)
class PostSend:
    """One call to a platform: what to do with which message."""

    op: Literal["create", "replace", "append", "finish"]
    target: SessionKey
    marker: str
    content: PostContent
    remote_id: str | None = None
    consumed: int = 0


@dataclass(frozen=True, slots=True)
class PostSent:
    """What the platform made of it, and how much of the text is settled there."""

    remote_id: str
    consumed: int = 0
    unfinished: bool = False
    """Whether it takes a further call until people see it; what is known so far is kept before."""
