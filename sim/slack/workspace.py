"""A Slack workspace in memory: people, apps, channels, messages, and a record of all calls.

It knows nothing of the bridge, and refuses what Slack refuses.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal

from sim.slack.model import (
    KINDS,
    SESSION_SECONDS,
    STATUS_SECONDS,
    STREAM_SECONDS,
    TEAM,
    App,
    Call,
    Channel,
    Kind,
    Message,
    Notification,
    Person,
    Session,
    StoredFile,
)

Emit = Callable[[App, str, dict[str, Any]], None]


class Workspace:
    """The state of Slack; guarded by one lock, and `changed` signals every change."""

    def __init__(self, now: Callable[[], float] = time.time, speed: float = 1.0) -> None:
        self.now = now
        self.speed = speed
        """How much faster Slack's limits of time pass than its clock."""
        self.changed = threading.Condition(threading.RLock())
        self.apps: dict[str, App] = {}
        self.people: dict[str, Person] = {}
        self.groups: dict[str, frozenset[str]] = {}
        """Who belongs to each user group."""
        self.channels: dict[str, Channel] = {}
        self.messages: list[Message] = []
        self.files: dict[str, StoredFile] = {}
        self.sessions: dict[tuple[str, str, str], Session] = {}
        """By app, channel and thread."""
        self.responses: list[str] = []
        """What apps answered to interactions, seen by the person who acted."""
        self.notifications: list[Notification] = []
        self.stream_idle_seconds = STREAM_SECONDS
        """How long a stream may be silent: less than it lives, on some days."""
        self.refused_blocks: set[str] = set()
        """Types of blocks that this workspace does not take, for an unknown reason."""
        self.reds: list[str] = []
        """The messages that Slack ever marked as failed."""
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
        kind: Kind = "channel",
    ) -> str:
        """Open a channel with these people and apps; returns its id."""
        letter = {"channel": "C", "group": "G", "im": "D", "mpim": "G"}[kind]
        made = Channel(f"{letter}{next(self._numbers):04d}", name, kind)
        made.members = {each.user if isinstance(each, App) else each for each in members}
        with self.changed:
            self.channels[made.id] = made
        return made.id

    def direct(self, app: App, person: str) -> str:
        """Return the direct message between a person and an app; it is opened once."""
        members = {app.user, person}
        for each in self.channels.values():
            if each.kind == "im" and each.members == members:
                return each.id
        return self.channel("", [app, person], "im")

    def group(self, members: Iterable[str]) -> str:
        """Make a user group; returns its id."""
        made = f"S{next(self._numbers):04d}"
        with self.changed:
            self.groups[made] = frozenset(members)
        return made

    def file(
        self, name: str, content: bytes, media_type: str = "text/plain", number: str = ""
    ) -> str:
        """Upload a file; returns its id."""
        made = StoredFile(number or f"F{next(self._numbers):04d}", name, media_type, content)
        made.url = f"{self.files_url}/{made.id}/{name}"
        with self.changed:
            self.files[made.id] = made
        return made.id

    def status(self, app: App, channel: str, thread: str) -> str:
        """Return the status that people see in a thread; empty once it has expired."""
        self.pass_time()
        return self.session(app, channel, thread).status

    def session(self, app: App, channel: str, thread: str) -> Session:
        """Find the session of a thread, or make one."""
        return self.sessions.setdefault((app.name, channel, thread), Session())

    def set_status(self, app: App, channel: str, thread: str, status: str) -> None:
        """Set what people see of an agent's work in a thread."""
        session = self.session(app, channel, thread)
        session.status, session.at = status, self.now()

    def streaming(self, message: Message) -> bool:
        """Tell whether a message still takes appends."""
        self.pass_time()
        return message.stream is not None and message.stream.open

    def pass_time(self) -> None:
        """End the streams and statuses whose time is over."""
        now = self.now()
        for message in self.messages:
            stream = message.stream
            if stream is not None and stream.open:
                idle_until = stream.last + self.stream_idle_seconds / self.speed
                ends = min(stream.began + STREAM_SECONDS / self.speed, idle_until)
                if now >= ends:
                    self.end_stream(message, at=ends, red=True)
                    assert message.app is not None
                    self.set_status(
                        message.app, message.channel, message.thread or message.ts, "active"
                    )
        for session in self.sessions.values():
            age = (now - session.at) * self.speed
            if session.status == "processing" and age > SESSION_SECONDS:
                session.status = "active"
            if session.status == "thinking" and age > STATUS_SECONDS:
                session.status = ""

    def end_stream(self, message: Message, *, at: float, red: bool = False) -> None:
        """End a stream: what is in progress in it becomes an error, and people are notified."""
        stream = message.stream
        assert stream is not None
        stream.open = False
        for card in stream.tasks.values():
            if card["status"] == "in_progress":
                card["status"], red = "error", True
        if red:
            message.red = True
            self.reds.append(message.ts)
        self.notify(message, at)

    def notify(self, message: Message, at: float) -> None:
        """Notify everyone who follows the thread of an app's message."""
        thread = message.thread or message.ts
        tasks = message.stream.tasks.values() if message.stream is not None else ()
        titles = "\n".join(card["title"] for card in tasks)
        for user in sorted(self._followers(message.channel, thread)):
            told = Notification(at, user, message.ts, message.words, titles)
            self.notifications.append(told)

    def _followers(self, channel: str, thread: str) -> set[str]:
        if self.channels[channel].kind == "im":
            return self.channels[channel].members & self.people.keys()
        said = self.thread(channel, thread)
        named = dict.fromkeys(self.people, "<@{}>") | dict.fromkeys(self.groups, "<!subteam^{}>")
        found = {
            who
            for who, form in named.items()
            for each in said
            if form.format(who) in f"{each.text}\n{each.words}"
        }
        mentioned = {user for who in found for user in self.groups.get(who, {who})}
        return {each.user for each in said if each.user in self.people} | mentioned

    def notified(self, user: str) -> list[Notification]:
        """List what a person was notified of, in order."""
        with self.changed:
            self.pass_time()
            return [each for each in self.notifications if each.user == user]

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
        if message.app is not None and message.user == message.app.user and not message.stream:
            self.notify(message, self.now())
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
            "filetype": "quip" if kept.is_canvas else kept.name.rpartition(".")[2],
            "mode": "quip" if kept.is_canvas else "hosted",
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
