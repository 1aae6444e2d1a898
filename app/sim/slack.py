"""A Slack workspace in memory: people, apps, channels, messages, and a record of all calls.

It knows nothing of the bridge, and refuses what Slack refuses.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

TEAM = "T0HOME"
SCOPES = frozenset(
    {
        "app_mentions:read",
        "assistant:write",
        "channels:history",
        "chat:write",
        "files:read",
        "files:write",
        "groups:history",
        "im:history",
        "mpim:history",
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
KINDS = {"channel": "message.channels", "group": "message.groups", "im": "message.im"}
STREAM_IDLE_SECONDS = 300.0
"""Slack closes a stream that is idle for about five minutes."""
STREAM_CHARACTERS = 12_000
"""Approximate size limit of one stream."""
STATUS_SECONDS = 120.0
"""A status that is not renewed disappears."""


class SlackSays(Exception):
    """A refusal by Slack: its error code, and the rest of the answer."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.answer = {"ok": False, "error": error, **more}


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
    streams: bool = True
    """Whether this workspace lets the app stream."""
    sessions: bool = True
    """Whether it has agent sessions and their Stop button."""
    revoked: bool = False


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
    kind: Literal["channel", "group", "im"] = "channel"
    members: set[str] = field(default_factory=set)
    archived: bool = False


@dataclass
class Stream:
    """A message while it is being written."""

    last: float
    characters: int = 0
    open: bool = True
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    title: str = ""


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
            written |= {"edited": {"user": self.user, "ts": self.ts}}
        return written


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


Emit = Callable[[App, str, dict[str, Any]], None]


class Workspace:
    """The state of Slack; guarded by one lock, and `changed` signals every change."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self.now = now
        self.changed = threading.Condition(threading.RLock())
        self.apps: dict[str, App] = {}
        self.people: dict[str, Person] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: list[Message] = []
        self.files: dict[str, StoredFile] = {}
        self.statuses: dict[tuple[str, str, str], tuple[str, float]] = {}
        self.calls: list[Call] = []
        self.files_url = ""
        self.emit: Emit = lambda _app, _type, _payload: None
        self._numbers = itertools.count(1)
        self._last = 0

    def app(self, name: str, **more: Any) -> App:
        """Install an app."""
        number = next(self._numbers)
        made = App(
            name,
            id=f"A{number:04d}",
            user=f"U{number:04d}BOT",
            bot=f"B{number:04d}",
            token=f"xoxb-{number:04d}-{name}",
            app_token=f"xapp-{number:04d}-{name}",
            **more,
        )
        with self.changed:
            self.apps[name] = made
        return made

    def person(self, name: str, kind: Literal["member", "guest", "stranger"] = "member") -> str:
        """Add a person; returns their id."""
        made = Person(f"U{next(self._numbers):04d}{name.upper()}", name, kind)
        with self.changed:
            self.people[made.id] = made
        return made.id

    def channel(
        self,
        name: str,
        members: Iterable[str | App],
        kind: Literal["channel", "group", "im"] = "channel",
    ) -> str:
        """Open a channel with these people and apps; returns its id."""
        letter = {"channel": "C", "group": "G", "im": "D"}[kind]
        made = Channel(f"{letter}{next(self._numbers):04d}", name, kind)
        made.members = {each.user if isinstance(each, App) else each for each in members}
        with self.changed:
            self.channels[made.id] = made
        return made.id

    def file(
        self, name: str, content: bytes, media_type: str = "text/plain", number: str = ""
    ) -> str:
        """Upload a file; returns its id."""
        made = StoredFile(number or f"F{next(self._numbers):04d}", name, media_type, content)
        made.url = f"{self.files_url}/{made.id}/{name}"
        with self.changed:
            self.files[made.id] = made
        return made.id

    def say(
        self,
        user: str,
        channel: str,
        text: str,
        *,
        thread: str | None = None,
        files: Iterable[str] = (),
        attachments: Iterable[dict[str, Any]] = (),
        bot: App | None = None,
    ) -> str:
        """Post a message as a person, or as a bot that is not an agent; returns its ts."""
        with self.changed:
            said = Message(self.ts(), channel, user, text, thread, bot, files=list(files))
            said.attachments.extend(attachments)
            self.add(said, mentions=True)
        return said.ts

    def forward(
        self, user: str, channel: str, ts: str, text: str = "", *, thread: str | None = None
    ) -> str:
        """Forward a message, with a text; returns the ts of the new one."""
        message = self.message(ts)
        author = self.people.get(message.user)
        attachment = {
            "is_share": True,
            "is_msg_unfurl": True,
            "author_id": message.user,
            "author_name": author.name if author is not None else message.user,
            "channel_id": message.channel,
            "channel_name": self.channels[message.channel].name,
            "ts": ts,
            "text": message.text,
            "fallback": f"[A while ago] {message.text}",
            "files": [self.file_json(each) for each in message.files],
        }
        return self.say(user, channel, text, thread=thread, attachments=[attachment])

    def edit(self, ts: str, text: str) -> None:
        """Edit a message."""
        with self.changed:
            message = self.message(ts)
            before = message.as_json(self.file_json, metadata=False)
            message.text, message.edits = text, message.edits + 1
            self.tell_changed(message, before)

    def unfurl(self, ts: str) -> None:
        """Have Slack add a preview to a message, which looks like an edit."""
        with self.changed:
            message = self.message(ts)
            self.tell_changed(message, message.as_json(self.file_json, metadata=False))

    def delete(self, ts: str) -> None:
        """Delete a message."""
        with self.changed:
            message = self.message(ts)
            message.deleted = True
            event = {
                "type": "message",
                "subtype": "message_deleted",
                "hidden": True,
                "deleted_ts": ts,
                "previous_message": message.as_json(self.file_json, metadata=False),
            }
            self.tell(message.channel, event)

    def click(self, user: str, ts: str, label: str) -> None:
        """Press a button.

        Raises:
            LookupError: there is no such button.
        """
        with self.changed:
            message = self.message(ts)
            button = next((b for b in buttons(message.blocks) if b["text"]["text"] == label), None)
            if button is None:
                raise LookupError(f"there is no button {label!r} on {message.words!r}")
            self._act(user, message, button)

    def choose(self, user: str, ts: str, label: str) -> None:
        """Pick an option from a list.

        Raises:
            LookupError: no list of this message has it.
        """
        with self.changed:
            message = self.message(ts)
            for menu in lists(message.blocks):
                for option in menu["options"]:
                    if option["text"]["text"] == label:
                        action = {key: menu[key] for key in ("type", "action_id", "placeholder")}
                        self._act(user, message, {**action, "selected_option": option})
                        return
            raise LookupError(f"there is no {label!r} to choose on {message.words!r}")

    def _act(self, user: str, message: Message, element: dict[str, Any]) -> None:
        """Tell the app of a message that a person used one of its elements."""
        assert message.app is not None, "only apps write such messages"
        person = self.people[user]
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": person.name, "name": person.name},
            "team": {"id": TEAM},
            "api_app_id": message.app.id,
            "container": {
                "type": "message",
                "message_ts": message.ts,
                "channel_id": message.channel,
            },
            "channel": {"id": message.channel},
            "message": message.as_json(self.file_json, metadata=False),
            "actions": [{**element, "action_ts": self.ts(), "block_id": "b1"}],
        }
        self.emit(message.app, "interactive", payload)

    def press_stop(self, user: str, app: App, channel: str, thread: str) -> None:
        """Press the native Stop button.

        Raises:
            LookupError: there is none.
        """
        with self.changed:
            stoppable = "agent_session_stopped" in app.events
            if not stoppable or self.status(app, channel, thread) != "processing":
                raise LookupError("there is no Stop button")
            stopped = [m for m in self.thread(channel, thread) if self.streaming(m)]
            stopped = [message for message in stopped if message.app is app]
            for message in stopped:
                assert message.stream is not None
                message.stream.open = False
            event = {
                "type": "agent_session_stopped",
                "channel": channel,
                "thread_ts": thread,
                "user": user,
                "streaming_message_ts": [message.ts for message in stopped],
            }
            self._send(app, event)

    def status(self, app: App, channel: str, thread: str) -> str:
        """Return the status that people see in a thread; empty once it has expired."""
        value, at = self.statuses.get((app.name, channel, thread), ("", 0.0))
        expired = value == "processing" and self.now() - at > STATUS_SECONDS
        return "" if expired else value

    def streaming(self, message: Message) -> bool:
        """Tell whether a message still takes appends."""
        stream = message.stream
        if stream is not None and self.now() - stream.last > STREAM_IDLE_SECONDS:
            stream.open = False
        return stream is not None and stream.open

    def thread(self, channel: str, thread: str) -> list[Message]:
        """List the messages that everyone sees in a thread, the first one included."""
        return [
            message
            for message in self.messages
            if message.channel == channel
            and thread in {message.ts, message.thread}
            and not message.deleted
            and message.only_for is None
        ]

    def message(self, ts: str) -> Message:
        """Find a message by its ts."""
        return next(message for message in self.messages if message.ts == ts)

    def ts(self) -> str:
        """Make the ts of the next message; it never goes back."""
        self._last = max(self._last + 1, int(self.now() * 1_000_000))
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def add(self, message: Message, *, mentions: bool = False) -> None:
        """Store a message and tell every app that gets it."""
        self.messages.append(message)
        event = message.as_json(self.file_json, metadata=False)
        event |= {"subtype": "file_share"} if message.files else {}
        if mentions:
            for app in self._apps_in(message.channel):
                if f"<@{app.user}>" in message.text and "app_mention" in app.events:
                    # Slack does not send the files with a mention.
                    left_out = {"files", "attachments", "subtype"}
                    bare = {k: v for k, v in event.items() if k not in left_out}
                    self._send(app, {**bare, "type": "app_mention", "channel": message.channel})
        self.tell(message.channel, event)
        self.changed.notify_all()

    def tell(self, channel: str, event: dict[str, Any]) -> None:
        """Send an event to every app that gets this channel's events."""
        kind = self.channels[channel].kind
        for app in self._apps_in(channel):
            if KINDS[kind] in app.events:
                self._send(app, {**event, "channel": channel, "channel_type": kind})
        self.changed.notify_all()

    def tell_changed(self, message: Message, before: dict[str, Any]) -> None:
        """Send the event of a message that was changed."""
        now = message.as_json(self.file_json, metadata=False)
        event = {"subtype": "message_changed", "hidden": True, "message": now}
        self.tell(message.channel, {"type": "message", **event, "previous_message": before})

    def file_json(self, file: str) -> dict[str, Any]:
        """Write a file as Slack's API does."""
        kept = self.files[file]
        return {
            "id": kept.id,
            "name": kept.name,
            "title": kept.title or kept.name,
            "mimetype": kept.media_type,
            "size": len(kept.content),
            "url_private": kept.url,
            "url_private_download": kept.url,
            "shares": {"public": {where: [{"ts": ts}] for where, ts in kept.shares.items()}}
            if kept.shares
            else {},
        }

    def wait(self, done: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something is true of the workspace."""
        with self.changed:
            if not self.changed.wait_for(done, seconds):
                shown = "\n".join(f"{m.ts} {m.user}: {m.words[:300]}" for m in self.messages)
                raise TimeoutError(f"Slack still shows:\n{shown}")

    def _apps_in(self, channel: str) -> list[App]:
        members = self.channels[channel].members
        return [app for app in self.apps.values() if app.user in members]

    def _send(self, app: App, event: dict[str, Any]) -> None:
        payload = {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": app.id,
            "event": {**event, "event_ts": event.get("ts") or self.ts()},
            "event_id": f"Ev{next(self._numbers):06d}",
            "event_time": int(self.now()),
        }
        self.emit(app, "events_api", payload)


def buttons(blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """List the buttons of a message."""
    for block in blocks:
        if block["type"] == "actions":
            yield from (each for each in block["elements"] if each["type"] == "button")


def lists(blocks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """List the select menus of a message."""
    for block in blocks:
        if block["type"] == "actions":
            yield from (each for each in block["elements"] if each["type"] == "static_select")


def block_words(blocks: Iterable[dict[str, Any]]) -> Iterator[str]:
    """List the text that people read in blocks, except on buttons."""
    for block in blocks:
        text = block.get("text")
        if isinstance(text, str):
            yield text
        elif text is not None:
            yield text["text"]
        if block["type"] == "context":
            yield from (element["text"] for element in block["elements"])
        if block["type"] == "rich_text":
            yield from (text for part in block["elements"] for text in rich_words(part))


def rich_words(part: dict[str, Any]) -> Iterator[str]:
    """List the text that people read in a part of a rich text."""
    return (element["text"] for element in part["elements"])
