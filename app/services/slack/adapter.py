"""One agent's presence on Slack: its own app, heard over a socket, answering in threads."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from app.core.clock import persist
from app.core.inbound import Delivery, Heard, Inbound
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.ports import Clock
from app.core.posts import PostSend, PostSent
from app.core.tasks import Tasks
from app.core.types import ActivePlace, Earlier, File, Speaker
from app.errors import PostDelayed, PostError, PostRejected
from app.services.slack import events, render
from app.services.slack.api import SlackApi, SlackRefused, SlackUncertain
from app.services.slack.auth import Colleagues, Identity, Seal, identify
from app.services.slack.files import fetched
from app.services.slack.people import People
from app.services.slack.posting import PACE_SECONDS, PAGE, PAGES, Poster
from app.services.slack.sharing import Sharer
from app.services.slack.socket import PING_SECONDS, Socket
from app.services.slack.status import Status

logger = logging.getLogger(__name__)

CATCH_UP_SECONDS: Final = 3 * 24 * 3600.0
"""How long ago a thread may have been used and still be looked at after a gap: a weekend."""
CATCH_UP_PAUSE_SECONDS: Final = 5.0
"""How long to wait before a thread that could not be read is read again."""
OVERLAP_SECONDS: Final = 60.0
"""How much is read twice after a gap; what is known is not handled again."""
RECENT_MESSAGES: Final = 256
"""How many messages are remembered so that their mentions need no look-up."""
WHO_TRIES: Final = 3
WHO_PAUSE_SECONDS: Final = 1.0
"""How often Slack is asked who somebody is: one hiccup is no reason to refuse their words."""
ABSENCE_SECONDS: Final = 2.0
"""How long a mention may be held up to see whether the agent is there."""
FILES_SECONDS: Final = 2.0
"""How long the files of a mention may hold it up: Slack waits three seconds for us."""

NOT_THERE: Final = {"not_in_channel", "channel_not_found"}

Active = Callable[[float], Awaitable[Sequence[ActivePlace]]]
Take = Callable[[Delivery], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SlackApp:
    """What one agent needs to be somebody on Slack."""

    agent: str
    bot_token: str
    app_token: str
    suffix: str = ""
    """How the names of its settings end."""
    base_url: str = "https://slack.com/api/"
    bots: Collection[str] = ()
    """The bots that may speak to it, by id."""


class SlackAdapter:
    """The adapter port for Slack."""

    shares_files: Final = True

    def __init__(
        self,
        app: SlackApp,
        *,
        colleagues: Colleagues,
        seal: Seal,
        active: Active,
        uploads: Path,
        clock: Clock,
        pace: float = PACE_SECONDS,
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        """Make the presence of an agent; `active` lists its threads that were used since then."""
        self.agent = app.agent
        self.service_name = adapter_name(events.SERVICE, app.agent)
        self.pace = pace
        self.trouble = "it has not connected to Slack yet"
        self._app = app
        self._colleagues = colleagues
        self._active = active
        self._uploads = uploads
        self._clock = clock
        self._api = SlackApi(app.base_url, app.bot_token)
        self._socket = Socket(app.agent, app.suffix, app.app_token, ping_seconds)
        self._reader = events.Reader(app.agent, frozenset(app.bots), seal.open)
        self._people = People(self._api, clock)
        self._poster = Poster(self._api, seal, clock, pace)
        self._sharer = Sharer(self._api, uploads)
        self._status = Status(self._api, clock, app.agent)
        self._tasks = Tasks(f"slack of {app.agent}")
        self._identity: Identity | None = None
        self._asking = asyncio.Lock()
        self._messages: deque[tuple[str, str]] = deque(maxlen=RECENT_MESSAGES)
        self._passing: dict[str, asyncio.Event] = {}
        """The last frame of each thread that is on its way in."""

    def parse(self, delivery: Delivery) -> Inbound | None:
        """Understand a frame of Slack; None if it is of no concern."""
        return self._reader.read(delivery)

    def is_shared(self, key: SessionKey) -> bool:
        """Tell whether other agents can answer as well: not in a direct message."""
        return not events.is_direct(events.channel_and_thread(key.external)[0])

    async def refusal(self, speaker: Speaker, place: PlaceKey) -> str | None:  # noqa: ARG002
        """Allow full members of the workspace."""
        for _ in range(WHO_TRIES - 1):
            try:
                return await self._refusal(speaker)
            except (PostDelayed, SlackUncertain) as error:
                wait = error.retry_after if isinstance(error, PostDelayed) else None
                await self._clock.sleep(wait or WHO_PAUSE_SECONDS)
        return await self._refusal(speaker)

    async def _refusal(self, speaker: Speaker) -> str | None:
        me = await self._me()
        return (await self._people.person(speaker.id, me.team)).refusal

    async def absence(self, heard: Heard) -> str | None:
        """Say that the app is not in a channel, or not who a direct message is with."""
        channel, thread = events.channel_and_thread(heard.place.name)
        if events.is_direct(channel):
            return "this is a direct message with another agent; write to it directly"
        if (channel, heard.message_id) in self._messages:
            return None  # it heard the same
        try:
            async with asyncio.timeout(ABSENCE_SECONDS):
                await self._api.read("conversations.replies", channel=channel, ts=thread, limit=1)
        except (PostError, TimeoutError) as error:
            if isinstance(error, SlackRefused) and error.error in NOT_THERE:
                return "it is not in this channel; invite it with `/invite`, then write again"
            logger.info("%s", error)  # whether it is there shows when it answers
        return None

    async def earlier(self, key: SessionKey, before: str) -> Sequence[Earlier]:
        """Read what people said in a thread before a message; agents' words are known."""
        channel, thread = events.channel_and_thread(key.external)
        me = await self._me()
        found = [
            message
            for message in await self._replies(channel, thread, latest=before)
            if message["ts"] < before and message.get("user") not in self._colleagues.agents
        ]
        frames = [{"payload": {"event": message}} for message in found]
        users = dict.fromkeys(user for frame in frames for user in events.users_in(frame))
        names = await self._people.names(users, me.team)
        known = events.Known(self._colleagues.agents, names, me.home)
        return [_earlier(message, known) for message in found]

    async def fetch(self, file: File) -> File:
        """Bring a file of Slack into the uploads; a note takes its place if it cannot be had."""
        return await fetched(self._api, self._uploads, file)

    async def whisper(self, key: SessionKey, speaker: Speaker, words: str) -> None:
        """Tell one person something that nobody else in the thread sees."""
        channel, thread = events.channel_and_thread(key.external)
        await self._api.call(
            "chat.postEphemeral",
            channel=channel,
            thread_ts=thread,
            user=speaker.id,
            text=render.escape(words),
        )

    async def send(self, post: PostSend) -> PostSent:
        """Show a post in its thread."""
        content = post.content
        if content.kind == "files":
            return await self._sharer.send(post)
        is_turn = content.kind == "turn"
        rests = content.state in render.AT_REST
        if is_turn and not rests and content.state != "queued":
            self._status.begin(post.target, content.asker)
        try:
            sent = await self._poster.send(post, await self._me())
        except PostRejected:
            self._status.end(post.target)
            raise
        if is_turn and rests:
            self._status.end(post.target)
        return sent

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for a post in its thread by its mark."""
        return await self._poster.find(target, marker)

    async def listen(self, take: Take) -> None:
        """Hear what happens where the app is, and what was missed while nobody listened."""
        try:
            me = await self._me()
            # Before the socket opens: what comes over it is not what was missed.
            missed = await self._active(self._clock.now() - CATCH_UP_SECONDS)
            await self._colleagues.gathered()

            async def keep(frame: dict[str, Any], raw: bytes) -> None:
                # Every edit of an answer comes back as an event; nobody needs to keep those.
                if events.speaker_of(frame) not in self._colleagues.agents:
                    await take(await self._in_order(me, frame, raw))

            def opened(heard: float | None) -> None:
                self.trouble = ""
                self._tasks.start(self._catch_up(me, take, missed, heard), name="catch up")

            await self._socket.run(self._api.client, keep, opened)
        finally:
            self.trouble = "the connection to Slack is down; it is tried again"

    async def close(self) -> None:
        """Let go of everything."""
        await self._tasks.close()
        await self._status.close()
        await self._api.close()

    async def _me(self) -> Identity:
        async with self._asking:
            if self._identity is None:
                self._identity = await identify(self._api, self.agent, self._app.suffix)
                self._colleagues.add(self.agent, self._identity)
            return self._identity

    async def _in_order(self, me: Identity, frame: dict[str, Any], raw: bytes) -> Delivery:
        """Prepare a frame, and let those of its thread pass that came before it.

        Some need a look-up and others do not: a stop must not overtake what it is to stop.
        """
        thread = events.thread_in(frame)
        before, passed = self._passing.get(thread), asyncio.Event()
        self._passing[thread] = passed
        try:
            delivery = await self._delivery(me, frame, raw)
            if before is not None:
                await before.wait()
            return delivery
        finally:
            passed.set()
            if self._passing.get(thread) is passed:
                del self._passing[thread]

    async def _delivery(self, me: Identity, frame: dict[str, Any], raw: bytes) -> Delivery:
        """Put a frame into the form in which it is kept, with what is needed to understand it."""
        payload = frame.get("payload") or {}
        event = payload.get("event") or {}
        agents = self._colleagues.agents
        message = (str(event.get("channel")), str(event.get("ts")))
        if event.get("type") == "message":
            self._messages.append(message)
        elif event.get("type") == "app_mention" and message not in self._messages:
            raw = await self._with_files(frame, raw)
        people = [user for user in events.users_in(frame) if user not in agents]
        names = await self._people.names(people, me.team)
        return Delivery(
            adapter=self.service_name,
            delivery_id=payload.get("event_id") or frame["envelope_id"],
            signature=None,
            headers=events.Known(agents, names, me.home).headers(),
            body=raw,
            received_at=self._clock.now(),
        )

    async def _with_files(self, frame: dict[str, Any], raw: bytes) -> bytes:
        """Add the files of a message, and what was forwarded, to its mention, which lacks them.

        Needed only where the mention comes before the message itself, or instead of it.

        Raises:
            PostDelayed: they cannot be looked up now; Slack sends the mention again.
        """
        event = frame["payload"]["event"]
        try:
            async with asyncio.timeout(FILES_SECONDS):
                answer = await self._api.read(
                    "conversations.replies",
                    channel=event["channel"],
                    ts=events.thread_of(event),
                    oldest=event["ts"],
                    latest=event["ts"],
                    inclusive="true",
                    limit=2,  # the first message of the thread comes with it
                )
        except (PostError, TimeoutError) as error:
            if frame.get("retry_attempt") or isinstance(error, SlackRefused):
                logger.warning("a mention is taken without its files: %s", error)
                return raw
            raise PostDelayed(f"the files of a mention are not known: {error}") from error
        for message in answer["messages"]:
            if message["ts"] == event["ts"]:
                event |= {key: message[key] for key in ("files", "attachments") if key in message}
        return orjson.dumps(frame)

    async def _catch_up(
        self, me: Identity, take: Take, at_start: Sequence[ActivePlace], heard: float | None
    ) -> None:
        """Take in the replies that nobody heard, as if they had just come."""
        since = self._clock.now() - CATCH_UP_SECONDS
        places = at_start if heard is None else await self._active(since)
        for place in places:
            last = place.last_message_id
            oldest = last if heard is None else min(last, f"{heard - OVERLAP_SECONDS:.6f}")
            # What was said before an agent was called was said to nobody, and told to it then.
            oldest = max(oldest, place.first_message_id)
            channel, thread = events.channel_and_thread(place.key.external)
            for message in await self._replies_in_time(channel, thread, oldest):
                if message["ts"] > oldest and message.get("user") not in self._colleagues.agents:
                    missed = await self._missed(me, channel, message)
                    await persist(self._clock, take, missed)

    async def _replies_in_time(
        self, channel: str, thread: str, oldest: str
    ) -> list[dict[str, Any]]:
        """Read replies, however long Slack puts it off; none where it never lets us."""
        while True:
            try:
                return await self._replies(channel, thread, oldest=oldest)
            except SlackRefused as error:
                logger.warning("missed replies in %s:%s cannot be read: %s", channel, thread, error)
                return []
            except PostError as error:
                wait = error.retry_after if isinstance(error, PostDelayed) else None
                await self._clock.sleep(wait or CATCH_UP_PAUSE_SECONDS)

    async def _missed(self, me: Identity, channel: str, message: dict[str, Any]) -> Delivery:
        event = {"type": "message", **message, "channel": channel}
        frame = {
            "type": "events_api",
            "payload": {"event": event, "event_id": f"{events.MISSED}{channel}:{message['ts']}"},
        }
        return await self._delivery(me, frame, orjson.dumps(frame))

    async def _replies(self, channel: str, thread: str, **bounds: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(PAGES):
            answer = await self._api.read(
                "conversations.replies",
                channel=channel,
                ts=thread,
                limit=PAGE,
                cursor=cursor,
                **bounds,
            )
            messages.extend(answer["messages"])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
        return messages


def _earlier(message: dict[str, Any], known: events.Known) -> Earlier:
    user, bot = message.get("user") or "", message.get("bot_id")
    name = known.names.get(user) or message.get("username") or user or bot or "somebody"
    return Earlier(
        message_id=message["ts"],
        speaker=Speaker(user or bot or "", str(name), "bot" if bot else "person"),
        text=events.everything_in(message, known),
        files=events.files_of(message),
    )
