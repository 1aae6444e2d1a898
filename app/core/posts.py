"""What goes out: one outbound message in neutral words, and what a platform made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.core.keys import SessionKey
from app.core.updates import AskOption, PlanStep


@dataclass(frozen=True, slots=True)
class PostContent:
    """What a post says, before any platform's form."""

    kind: Literal["turn", "ask", "notice"]
    state: str = ""
    text: str = ""
    note: str = ""
    """One line by the bridge itself."""
    plan: tuple[PlanStep, ...] = ()
    tools: tuple[str, ...] = ()
    ask: int | None = None
    options: tuple[AskOption, ...] = ()


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
