"""Reads what Slack has in the conversations of one app, as the frames that should have arrived.

A channel shows the first messages of threads, and which of them got replies; a thread in use is
read by itself. Whether a message did arrive is decided elsewhere, by its channel and its time.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from app.clock import Clock
from app.core.adapters import Source
from app.model.inbound import Delivery
from app.model.types import ActivePlace, WaitingMessage
from app.services.common.webhooks import ReadPage, read_pages
from app.services.slack import events
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.people import SlackIdentity
from app.services.slack.text import Event

IN_USE_SECONDS: Final = 3 * 24 * 3600.0
"""How long the replies of a thread are read after the agent's last turn there: a weekend."""
MOVED_SECONDS: Final = 24 * 3600.0
"""How old the first message of a thread may be for a first mention in it to be found."""
PAGE: Final = 200
PAGES: Final = 50
"""Pages of one conversation at once: ten thousand messages."""
KINDS: Final = {
    "public_channel": "channels:read",
    "private_channel": "groups:read",
    "im": "im:read",
    "mpim": "mpim:read",
}
"""The kinds of conversations, and the scope to list each."""
GONE: Final = "thread_not_found"
TOMBSTONE: Final = "tombstone"
"""What Slack shows of a deleted message that has replies."""
TS: Final = re.compile(r"\d+\.\d+")
"""The id of a message; commands and runs of schedules have others."""


@dataclass(frozen=True, slots=True)
class Threads:
    """What the bridge knows of an agent's threads."""

    active: Callable[[float], Awaitable[Sequence[ActivePlace]]]
    """Lists those in use since a time."""
    waiting: Callable[[], Awaitable[Sequence[WaitingMessage]]]
    """Lists the messages in its queue."""


class Conversations:
    """The conversations of one app, as Slack has them."""

    def __init__(
        self,
        api: SlackApi,
        clock: Clock,
        threads: Threads,
        me: SlackIdentity,
        make: Callable[[Event, str, float], Delivery],
    ) -> None:
        """Read what was said; `make` makes a delivery of an event, its id and its time."""
        self._api = api
        self._clock = clock
        self._threads = threads
        self._me = me
        self._make = make

    async def sources(self, heard: Mapping[str, float]) -> Sequence[Source]:
        """List the channels that the app is in, and the threads that its agent works in.

        `heard` tells when something was last said in a channel.

        Raises:
            PostError: Slack does not say.
        """
        threads = await self._in_use()
        channels = {channel: heard.get(channel, 0.0) async for channel in self._channels()}
        for place in threads:
            channel, _ = events.channel_and_thread(place.key.external)
            channels[channel] = max(channels.get(channel, 0.0), place.updated_at)
        return [
            *(Source(name, partial(self._in_channel, name), at) for name, at in channels.items()),
            *(
                Source(place.key.external, partial(self._in_thread, place), place.updated_at)
                for place in threads
            ),
        ]

    def _in_use(self) -> Awaitable[Sequence[ActivePlace]]:
        return self._threads.active(self._clock.now() - IN_USE_SECONDS)

    async def _channels(self) -> AsyncGenerator[str, None]:
        kinds = ",".join(kind for kind, scope in KINDS.items() if scope in self._me.scopes)
        if not kinds:
            return
        read = self._reader(
            "users.conversations", "channels", types=kinds, exclude_archived="true", limit=PAGE
        )
        async for channel in read_pages(read, pages=PAGES, what="an app's conversations"):
            yield channel["id"]

    async def _in_channel(self, channel: str, since: float) -> AsyncGenerator[Delivery, None]:
        """Find what was said to the agent in a channel, and first mentions in its threads."""
        in_use = {place.key.external for place in await self._in_use()}
        for message in await self._history(channel, since):
            if self._is_for_agent(channel, message, since):
                yield self._said(channel, message)
            moved = float(message.get("latest_reply") or 0) > since
            if moved and events.external(channel, message["ts"]) not in in_use:
                for reply in await self._replies(channel, message["ts"], since):
                    if self._is_for_agent(channel, reply, since):
                        yield self._said(channel, reply)

    def _is_for_agent(self, channel: str, message: Event, since: float) -> bool:
        me = {self._me.user: ""}
        is_meant = events.is_direct(channel) or events.find_mentions(message.get("text") or "", me)
        return float(message["ts"]) > since and bool(is_meant)

    async def _in_thread(self, place: ActivePlace, since: float) -> AsyncGenerator[Delivery, None]:
        """Find what was said in a thread in use, and what was done to messages that wait there."""
        channel, thread = events.channel_and_thread(place.key.external)
        waiting = [
            each
            for each in await self._threads.waiting()
            if each.place.name == place.key.external and TS.fullmatch(each.message_id)
        ]
        # Messages before the agent was called were not for it; it got them as context then.
        called = place.first_message_id
        since = max(since, float(called) if TS.fullmatch(called) else 0.0)
        try:
            said = await self._replies(
                channel, thread, min([since, *(float(each.message_id) for each in waiting)])
            )
        except SlackRefused as error:
            if error.error != GONE:
                raise
            said = []
        found = {message["ts"]: message for message in said}
        for each in waiting:
            if (changed := self._changed(channel, each, found.get(each.message_id))) is not None:
                yield changed
        for message in said:
            if float(message["ts"]) > since:
                yield self._said(channel, message)

    async def _history(self, channel: str, since: float) -> list[Event]:
        """Read a channel, oldest first: what is new, and at no cost the threads of a day."""
        oldest = min(since, self._clock.now() - MOVED_SECONDS)
        whole = self._reader(
            "conversations.history", "messages", channel=channel, oldest=f"{oldest:.6f}", limit=PAGE
        )

        async def read(cursor: str | None) -> tuple[Sequence[Event], str | None]:
            messages, following = await whole(cursor)
            listed = list(messages)
            is_enough = not listed or float(listed[-1]["ts"]) <= since
            return listed, None if is_enough else following

        pages = read_pages(read, pages=PAGES, what=f"the channel {channel}")
        return [message async for message in pages][::-1]

    async def _replies(self, channel: str, thread: str, since: float) -> list[Event]:
        """Read a thread, oldest first; its first message is always there."""
        read = self._reader(
            "conversations.replies",
            "messages",
            channel=channel,
            ts=thread,
            oldest=f"{since:.6f}",
            inclusive="true",
            limit=PAGE,
        )
        pages = read_pages(read, pages=PAGES, what=f"the thread {channel}:{thread}")
        return [message async for message in pages]

    def _reader(self, method: str, key: str, **given: Any) -> ReadPage[Event]:
        async def read(cursor: str | None) -> tuple[Sequence[Event], str | None]:
            answer = await self._api.read_in_time(method, cursor=cursor, **given)
            return answer[key], (answer.get("response_metadata") or {}).get("next_cursor")

        return read

    def _said(self, channel: str, message: Event) -> Delivery:
        event = {"type": "message", **message, "channel": channel}
        return self._make(event, f"{channel}:{message['ts']}", float(message["ts"]))

    def _changed(self, channel: str, waiting: WaitingMessage, now: Event | None) -> Delivery | None:
        """Make the event of a waiting message that was edited or deleted; None if it was not."""
        name, sent_at = f"{channel}:{waiting.message_id}", float(waiting.message_id)
        event: dict[str, Any] = {"type": "message", "channel": channel}
        if now is None or now.get("subtype") == TOMBSTONE:
            _, thread = events.channel_and_thread(waiting.place.name)
            before = {"user": waiting.speaker_id, "ts": waiting.message_id, "thread_ts": thread}
            event |= {"subtype": "message_deleted", "previous_message": before}
            return self._make(event, f"{name}:deleted", sent_at)
        if "edited" not in now:
            return None
        event |= {"subtype": "message_changed", "message": now}
        return self._make(event, f"{name}:{now['edited']['ts']}", float(now["edited"]["ts"]))
