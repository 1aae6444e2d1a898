"""What the simulated Slack stores: apps, people, channels, messages, files and calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from sim.slack.blocks import block_words

TEAM = "T0HOME"
SCOPES = frozenset(
    {
        "app_mentions:read",
        "assistant:write",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "files:read",
        "files:write",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "mpim:history",
        "mpim:read",
        "reactions:write",
        "users:read",
    }
)
EVENTS = frozenset(
    {
        "agent_session_stopped",
        "app_mention",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
    }
)
KINDS = {
    "channel": "message.channels",
    "group": "message.groups",
    "im": "message.im",
    "mpim": "message.mpim",
}
Kind = Literal["channel", "group", "im", "mpim"]
STREAM_SECONDS = 300.0
"""Slack ends a stream five minutes after it began, however much is appended."""
SESSION_SECONDS = 3600.0
"""A session that works is set to active after an hour without news."""
STATUS_SECONDS = 120.0
"""The status of a thread without a session disappears if it is not renewed."""
CANVAS = "application/vnd.slack-docs"
SESSION_STATUSES = frozenset({"processing", "active", "suspended", "closed"})


@dataclass
class App:
    """One Slack app, installed in the workspace."""

    name: str
    id: str
    user: str
    bot: str
    token: str
    app_token: str
    scopes: frozenset[str] = SCOPES
    events: frozenset[str] = EVENTS
    former: str = ""
    """A bot token that was rotated and works for a while."""
    streams: bool = True
    """Whether this workspace lets the app stream."""
    no_sessions: str = ""
    """Why it has no agent sessions and no Stop button, as Slack says it."""
    revoked: bool = False
    distributed: bool = False
    """Whether others install it too, outside of the Marketplace: Slack limits its reading."""


@dataclass
class Person:
    """A person in the workspace, or one who only shares a channel with it."""

    id: str
    name: str
    kind: Literal["member", "guest", "stranger"] = "member"


@dataclass
class Channel:
    """A place where people talk."""

    id: str
    name: str
    kind: Kind = "channel"
    members: set[str] = field(default_factory=set)
    archived: bool = False
    sessions: bool = True
    """Whether agent sessions are possible in this kind of channel."""


@dataclass
class Stream:
    """A message while it is being written."""

    began: float
    last: float
    open: bool = True
    stopped_by_user: bool = False
    mode: str = "timeline"
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Message:
    """One message, as Slack stores it."""

    ts: str
    channel: str
    user: str
    text: str = ""
    thread: str | None = None
    app: App | None = None
    blocks: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    files: list[str] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    stream: Stream | None = None
    only_for: str | None = None
    edits: int = 0
    edited: str = ""
    """When it was last edited."""
    red: bool = False
    """Whether Slack marks it as failed: its stream ran out of time, or work in it was cut off."""
    reactions: dict[str, set[str]] = field(default_factory=dict)
    """Who reacted, by emoji."""
    deleted: bool = False
    touched: list[float] = field(default_factory=list)
    """When an app wrote to it."""

    @property
    def words(self) -> str:
        """The text that people read."""
        shown = list(block_words(self.blocks))
        if self.stream is not None:
            return "\n".join([self.text, *shown]).strip()
        return "\n".join(shown) or self.text

    def as_json(self, files: Callable[[str], dict[str, Any]], *, metadata: bool) -> dict[str, Any]:
        """Write it as Slack's API does."""
        tasks = list(self.stream.tasks.values()) if self.stream is not None else []
        cards = [{"type": "task_card", "task_id": task["id"], **task} for task in tasks]
        written: dict[str, Any] = {
            "type": "message",
            "user": self.user,
            "ts": self.ts,
            "text": self.text,
            "team": TEAM,
            "blocks": [*cards, *self.blocks],
        }
        if self.thread is not None:
            written |= {"thread_ts": self.thread}
        if self.app is not None:
            written |= {"bot_id": self.app.bot, "app_id": self.app.id}
        if self.files:
            written |= {"files": [files(each) for each in self.files]}
        if self.attachments:
            written |= {"attachments": self.attachments}
        if self.metadata is not None and metadata:
            written |= {"metadata": self.metadata}
        if self.edits:
            written |= {"edited": {"user": self.user, "ts": self.edited or self.ts}}
        return written


@dataclass
class Session:
    """An agent session, or the status of a thread that has none."""

    status: str = ""
    at: float = 0.0
    title: str = ""
    initiator: str = ""


@dataclass(frozen=True)
class Notification:
    """What a person was notified of: a message, as it was at that moment."""

    at: float
    user: str
    ts: str
    words: str
    cards: str
    """The titles of its cards."""


@dataclass(frozen=True)
class Call:
    """One call of the Web API and its answer."""

    at: float
    app: str
    method: str
    arguments: dict[str, Any]
    answer: dict[str, Any]


@dataclass
class StoredFile:
    """A file in the workspace."""

    id: str
    name: str
    media_type: str
    content: bytes
    url: str = ""
    title: str = ""
    shares: dict[str, str] = field(default_factory=dict)
    """The messages that show it, by channel."""

    @property
    def is_canvas(self) -> bool:
        """Whether it is a canvas, which Slack serves as HTML."""
        return self.media_type == CANVAS
