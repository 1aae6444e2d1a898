"""Shows posts in Slack: as a stream where Slack allows it, else as a message that is edited.

Slack ends a stream that is idle for long, and a stream has a size limit; then its message is
edited, and what does not fit goes into more messages and in the end into a file. Each message of a
post carries the post's marker and the offset in the text where it begins, so it can be found again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from app.core.files.download import FileRefused
from app.core.keys import SessionKey
from app.core.ports import Clock
from app.core.posts import PostSend, PostSent
from app.errors import PostDelayed, PostRejected
from app.services.slack import render
from app.services.slack.api import SlackApi, SlackRefused, SlackUncertain
from app.services.slack.auth import Identity, Seal
from app.services.slack.events import channel_and_thread, is_person

logger = logging.getLogger(__name__)

PACE_SECONDS: Final = 1.0
"""Minimum time between two calls for one message."""
MESSAGES: Final = 5
"""Maximum messages per answer; the rest is sent as a file."""
EVENT_TYPE: Final = "agent_bridge_post"
NO_STREAMS: Final = {"unknown_method", "missing_scope", "not_allowed_token_type", "access_denied"}
"""Errors that mean that this app can never stream here."""
NOT_STREAMING: Final = {"message_not_in_streaming_state", "streaming_state_conflict"}
BAD_FORM: Final = {
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "msg_blocks_too_long",
    "msg_too_long",
}
"""Errors that mean that Slack cannot render a message as written, for example its tables."""
GONE: Final = {"message_not_found", "cant_update_message", "edit_window_closed"}
PLACE_GONE: Final = {"not_in_channel", "channel_not_found", "is_archived", "thread_not_found"}


@dataclass(slots=True)
class Shown:
    """How much of a post Slack shows."""

    ts: str | None = None
    """The message that is being written; None: the next one is not begun yet."""
    start: int = 0
    """Where in the text it begins."""
    streamed: int | None = None
    """How far the text was streamed into it; None: it is not a stream."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: int = 0
    called_at: float = float("-inf")
    unsure: bool = False
    """Whether Slack may have made a message without confirming it."""
    maybe_streaming: bool = False
    """Whether an earlier run of the bridge may have left it as a stream."""
    uploaded: bool = False
    """Whether the rest was sent as a file."""


class Poster:
    """Posts of one agent's app."""

    def __init__(self, api: SlackApi, seal: Seal, clock: Clock, pace: float) -> None:
        self._api = api
        self._seal = seal
        self._clock = clock
        self._pace = pace
        self._streams = True
        self._uploads = True
        self._shown: dict[str, Shown] = {}
        self._asked: dict[str, float] = {}
        """When an open ask was shown, by its marker."""

    async def send(self, post: PostSend, me: Identity) -> PostSent:
        """Bring Slack up to date with a post; raises what the API does."""
        if post.content.kind != "turn":
            return await self._send_whole(post)
        shown = self._shown.get(post.marker)
        if shown is None:
            shown = self._shown[post.marker] = await self._take_up(post)
        elif shown.unsure:
            await self._find_again(post, shown)
        over = post.content.state in render.FINAL
        wait = shown.called_at + self._pace - self._clock.monotonic()
        if over and shown.ts is not None and wait > 0:
            raise PostDelayed("one call per message per second", retry_after=wait)
        try:
            await self._write(post, shown, me, over=over)
        except PostRejected:
            del self._shown[post.marker]
            raise
        except (SlackUncertain, asyncio.CancelledError):
            # It is not known what arrived: search for it, then rewrite it as a whole.
            shown.unsure = shown.maybe_streaming = True
            shown.streamed = None
            raise
        if over:
            del self._shown[post.marker]
        return PostSent(shown.ts or post.remote_id or "", shown.start)

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for the last message of a post."""
        found = await self._search(target, marker)
        return None if found is None or found.ts is None else PostSent(found.ts, found.start)

    async def _send_whole(self, post: PostSend) -> PostSent:
        """Show an ask or a notice: one message, changed as a whole."""
        content = post.content
        blocks = (
            render.ask(content, self._seal.close)
            if content.kind == "ask"
            else render.notice(content)
        )
        wait = self._asked.get(post.marker, float("-inf")) + self._pace - self._clock.monotonic()
        if post.remote_id is not None and wait > 0:
            raise PostDelayed("one call per message per second", retry_after=wait)
        shown = Shown(ts=post.remote_id)
        await self._put(post, shown, blocks)
        assert shown.ts is not None
        self._asked.pop(post.marker, None)
        if content.offered:
            self._asked[post.marker] = shown.called_at
        return PostSent(shown.ts, len(content.text))

    async def _take_up(self, post: PostSend) -> Shown:
        """Begin a post, or continue one that an earlier run of the bridge began."""
        if post.remote_id is None:
            return Shown()
        found = await self._search(post.target, post.marker)
        known = Shown(ts=post.remote_id, start=post.consumed, messages=1, maybe_streaming=True)
        return found if found is not None and found.start >= known.start else known

    async def _find_again(self, post: PostSend, shown: Shown) -> None:
        found = await self._search(post.target, post.marker)
        if found is not None and found.start >= shown.start:
            shown.ts, shown.start, shown.uploaded = found.ts, found.start, found.uploaded
            shown.messages, shown.streamed, shown.maybe_streaming = found.messages, None, True
        shown.unsure = False

    async def _search(self, target: SessionKey, marker: str) -> Shown | None:
        """Find what a thread shows of a post by the marker that each of its messages carries."""
        channel, thread = channel_and_thread(target.external)
        mark = re.compile(rf"{re.escape(marker)}\.(\d+)")
        found: Shown | None = None
        for message in await self._replies(channel, thread):
            if match := mark.search(orjson.dumps(message).decode()):
                found = found or Shown(maybe_streaming=True)
                found.messages += 1
                if message.get("files"):
                    found.uploaded = True
                elif int(match.group(1)) >= found.start:
                    found.ts, found.start = message["ts"], int(match.group(1))
        return found

    async def _replies(self, channel: str, thread: str) -> list[dict[str, Any]]:
        try:
            return await self._api.replies(channel, thread, include_all_metadata="true")
        except SlackRefused as error:
            # If it matters, the next post there fails with it.
            logger.info("%s", error)
            return []

    async def _write(self, post: PostSend, shown: Shown, me: Identity, *, over: bool) -> None:
        """Write until Slack shows everything, or as much as one call per second allows."""
        while True:
            if self._uploads and shown.messages >= MESSAGES and shown.ts is None:
                if over:
                    await self._write_rest(post, shown)
                return
            end = render.part_end(post.content.text, shown.start, shown.streamed or shown.start)
            if shown.streamed is not None:
                await self._stream(post, shown, end, over=over)
            elif shown.ts is None and not over and end is None and self._may_stream(post):
                await self._begin_stream(post, shown, me)
            if shown.streamed is None:
                await self._edit(post, shown, end)
            if end is None:
                return
            shown.ts, shown.start, shown.streamed, shown.tasks = None, end, None, {}
            if over:
                raise PostDelayed("the answer continues in another message", retry_after=self._pace)

    async def _write_rest(self, post: PostSend, shown: Shown) -> None:
        """Send what is left when the answer has used all its messages: a long rest as a file."""
        rest = post.content.text[shown.start :]
        if shown.uploaded:
            return
        if len(rest) <= render.PART_CHARACTERS:
            await self._edit(post, shown, None)
            return
        channel, thread = channel_and_thread(post.target.external)
        name = f"answer-{post.marker}.{shown.start}.md"
        below = render.words_below(post.content)
        comment = "\n".join(filter(None, ("The rest of the answer is in this file.", below)))
        try:
            number = await self._api.put(name, rest.encode())
            await self._api.share({number: name}, channel=channel, thread=thread, comment=comment)
        except (SlackRefused, FileRefused) as error:
            if isinstance(error, SlackRefused) and error.error in PLACE_GONE:
                raise
            logger.warning("%s; long answers use more messages instead", error)
            self._uploads = False
            raise PostDelayed("the answer continues in another message") from error
        shown.uploaded = True

    def _may_stream(self, post: PostSend) -> bool:
        """Tell whether a new message can be a stream: a stream needs a person as recipient."""
        content = post.content
        return self._streams and content.state != "queued" and is_person(content.asker)

    async def _begin_stream(self, post: PostSend, shown: Shown, me: Identity) -> None:
        channel, thread = channel_and_thread(post.target.external)
        level = render.verbosity(post.content, channel)
        tasks = render.tasks(post.content, level, f"{post.marker}.{shown.start}")
        text = post.content.text
        upto = max(shown.start, render.safe_end(text))
        words = render.piece(text[:upto], shown.start, None)
        try:
            answer = await self._api.call(
                "chat.startStream",
                channel=channel,
                thread_ts=thread,
                recipient_user_id=post.content.asker,
                recipient_team_id=me.team,
                task_display_mode="plan" if level == "quiet" else "timeline",
                chunks=render.chunks({}, tasks, words),
            )
        except SlackRefused as error:
            if error.error in PLACE_GONE:
                raise
            # Whether the workspace or the app lacks it, editing a message always works.
            logger.info("%s; editing a message instead of streaming", error)
            self._streams = error.error not in NO_STREAMS
            return
        except PostDelayed as error:
            # Slack starts at most twenty streams a minute; people should not wait for that.
            logger.info("%s; editing a message instead of streaming", error)
            return
        shown.ts, shown.streamed, shown.tasks = answer["ts"], upto, tasks
        shown.messages += 1
        shown.called_at = self._clock.monotonic()

    async def _stream(self, post: PostSend, shown: Shown, end: int | None, *, over: bool) -> None:
        """Append to a stream, and close it if it is full or over; Slack may have ended it."""
        text, done = post.content.text, shown.streamed
        assert done is not None
        upto = end if end is not None else len(text) if over else render.safe_end(text)
        channel, _ = channel_and_thread(post.target.external)
        level = render.verbosity(post.content, channel)
        tasks = render.tasks(post.content, level, f"{post.marker}.{shown.start}")
        if end is not None:
            tasks = {name: {**task, "status": "complete"} for name, task in tasks.items()}
        begun = render.opening(text, shown.start) if done == shown.start and upto > done else ""
        tail = render.closing(text, end) if end is not None else ""
        chunks = render.chunks(shown.tasks, tasks, render.defang(begun + text[done:upto] + tail))
        try:
            if over or end is not None:
                await self._stop_stream(post, shown, chunks, final=end is None)
            elif chunks:
                await self._api.call(
                    "chat.appendStream", channel=channel, ts=shown.ts, chunks=chunks
                )
        except SlackRefused as error:
            if error.error in PLACE_GONE:
                raise
            # What a stream refuses, an edited message may accept.
            shown.streamed = None
            shown.maybe_streaming = error.error not in NOT_STREAMING | GONE
        else:
            shown.streamed, shown.tasks = max(done, upto), tasks
            shown.called_at = self._clock.monotonic()

    async def _stop_stream(
        self, post: PostSend, shown: Shown, chunks: list[dict[str, Any]], *, final: bool
    ) -> None:
        channel, _ = channel_and_thread(post.target.external)
        await self._api.call(
            "chat.stopStream",
            channel=channel,
            ts=shown.ts,
            chunks=chunks or None,
            blocks=render.ending(post.content) if final else None,
            metadata=metadata(post, shown.start),
        )

    async def _edit(self, post: PostSend, shown: Shown, end: int | None) -> None:
        """Rewrite one message as a whole."""
        channel, _ = channel_and_thread(post.target.external)
        content = post.content
        level = render.verbosity(content, channel)
        text = render.piece(content.text, shown.start, end)
        blocks = render.message(content, text, level, last=end is None, seal=self._seal.close)
        if shown.maybe_streaming and shown.ts is not None:
            await self._end_stream(channel, shown.ts)
            shown.maybe_streaming = False
        await self._put(post, shown, blocks)

    async def _end_stream(self, channel: str, ts: str) -> None:
        try:
            await self._api.call("chat.stopStream", channel=channel, ts=ts)
        except SlackRefused as error:
            if error.error in PLACE_GONE:
                raise

    async def _put(self, post: PostSend, shown: Shown, blocks: list[dict[str, Any]]) -> None:
        """Show blocks; if Slack cannot render an agent's text, show it verbatim."""
        try:
            await self._put_blocks(post, shown, blocks)
        except SlackRefused as error:
            verbatim = render.verbatim(blocks)
            if error.error not in BAD_FORM or verbatim == blocks:
                raise
            logger.warning("%s; showing the text verbatim", error)
            await self._put_blocks(post, shown, verbatim)

    async def _put_blocks(self, post: PostSend, shown: Shown, blocks: list[dict[str, Any]]) -> None:
        """Change the message if there is one, else post it."""
        channel, thread = channel_and_thread(post.target.external)
        content = {
            "text": render.summary(post.content),
            "blocks": blocks,
            "metadata": metadata(post, shown.start),
        }
        if shown.ts is not None:
            try:
                await self._api.call("chat.update", channel=channel, ts=shown.ts, **content)
            except SlackRefused as error:
                if error.error not in GONE:
                    raise
                shown.ts = None
        if shown.ts is None:
            answer = await self._api.call(
                "chat.postMessage",
                channel=channel,
                thread_ts=thread,
                unfurl_links=False,
                unfurl_media=False,
                **content,
            )
            shown.ts = answer["ts"]
            shown.messages += 1
        shown.called_at = self._clock.monotonic()


def metadata(post: PostSend, start: int) -> dict[str, Any]:
    """Mark a message with its post and the offset in the text where it begins."""
    return {"event_type": EVENT_TYPE, "event_payload": {"post": f"{post.marker}.{start}"}}
