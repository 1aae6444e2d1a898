"""Shows posts in Slack: as a stream where Slack allows it, else as a message that is edited.

People are notified of new messages and of ended streams, never of edits. So an answer ends a
stream or is a new message; a message that was edited meanwhile is reduced to the progress. An
answer is never lost for its form: it is split, sent as a file, and in the end shown as plain text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from app.clock import Clock
from app.core.files.attachments import PlatformFileRefused
from app.errors import PostDelayed, PostError, PostRejected
from app.model.keys import SessionKey
from app.model.posts import PostSend, PostSent
from app.services.slack import render, text
from app.services.slack.api import SlackApi, SlackRefused, SlackUncertain
from app.services.slack.cards import FINAL
from app.services.slack.events import channel_and_thread
from app.services.slack.people import Seal, SlackIdentity
from app.services.slack.streams import KEEP_SECONDS, STREAM_SECONDS, Streams
from app.services.slack.wording import REST_IN_FILE
from app.services.slack.writing import (
    BAD_FORM,
    FOR_GOOD,
    GONE,
    PLACE_GONE,
    MessageWriter,
    ShownPost,
    search,
)
from app.tasks import Tasks

logger = logging.getLogger(__name__)


PACE_SECONDS: Final = 1.0
"""Minimum time between two calls for one message."""
MESSAGES: Final = 5
"""Maximum messages per answer; the rest is sent as a file."""
SMALLEST_PART: Final = 2_500
"""A part that Slack refuses for its form is halved down to this."""
RETRIES: Final = 4
"""How often an answer is sent again that Slack refuses for an unknown reason."""
RETRY_SECONDS: Final = 2.0
"""The first pause before that; it doubles."""


class Poster:
    """Posts of one agent's app."""

    def __init__(self, api: SlackApi, seal: Seal, clock: Clock, pace: float, agent: str) -> None:
        self._api = api
        self._seal = seal
        self._clock = clock
        self._pace = pace
        self._streams = Streams(api, clock)
        self._writer = MessageWriter(api, clock)
        self._tasks = Tasks(f"slack streams of {agent}")
        self._uploads = True
        self._shown: dict[str, ShownPost] = {}
        self._asked: dict[str, float] = {}
        """When an open ask was shown, by its marker."""

    async def send(self, post: PostSend, me: SlackIdentity) -> PostSent:
        """Bring Slack up to date with a post; raises what the API does."""
        if post.content.kind != "turn":
            return await self._send_whole(post)
        shown = self._shown.get(post.marker)
        if shown is None:
            shown = self._shown[post.marker] = await self._take_up(post)
        async with shown.lock:
            await self._send_turn(post, shown, me)
        if post.content.state in FINAL:
            self._forget(post.marker, shown)
        return PostSent(shown.progress or shown.ts or post.remote_id or "", shown.start)

    async def find(self, target: SessionKey, marker: str) -> PostSent | None:
        """Look for the message of a post that is being written."""
        found = await search(self._api, target, marker)
        return None if found is None or found.ts is None else PostSent(found.ts, found.start)

    async def close(self) -> None:
        """Stop all timers."""
        await self._tasks.close()

    async def _send_turn(self, post: PostSend, shown: ShownPost, me: SlackIdentity) -> None:
        if shown.unsure:
            found = await search(self._api, post.target, post.marker)
            if found is not None and found.start >= shown.start:
                shown.adopt(found)
            shown.unsure = False
        shown.post = post
        try:
            if post.content.state in FINAL:
                await self._finish(post, shown)
            else:
                await self._show_progress(post, shown, me)
        except PostRejected as error:
            self._retry_later(post, shown, error)
            self._forget(post.marker, shown)
            raise
        except (SlackUncertain, asyncio.CancelledError):
            # It is not known what arrived: search for it, then rewrite it as a whole.
            shown.unsure = shown.maybe_streaming = True
            shown.streamed = None
            raise

    def _retry_later(self, post: PostSend, shown: ShownPost, error: PostRejected) -> None:
        """Give an answer that was refused for an unknown reason another chance."""
        is_known = not isinstance(error, SlackRefused) or error.error in FOR_GOOD
        if post.content.state in FINAL and not is_known and shown.refusals < RETRIES:
            shown.refusals += 1
            wait = RETRY_SECONDS * 2**shown.refusals
            raise PostDelayed(str(error), retry_after=wait) from error

    def _forget(self, marker: str, shown: ShownPost) -> None:
        if shown.timer is not None:
            shown.timer.cancel()
        self._shown.pop(marker, None)

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
        shown = ShownPost(ts=post.remote_id)
        await self._writer.put(post, shown, blocks)
        assert shown.ts is not None
        self._asked.pop(post.marker, None)
        if content.offered:
            self._asked[post.marker] = shown.called_at
        return PostSent(shown.ts, len(content.text))

    async def _take_up(self, post: PostSend) -> ShownPost:
        """Begin a post, or continue one that an earlier run of the bridge began."""
        if post.remote_id is None:
            return ShownPost()
        found = await search(self._api, post.target, post.marker)
        known = ShownPost(ts=post.remote_id, start=post.consumed, messages=1, maybe_streaming=True)
        return found if found is not None and found.start >= known.start else known

    async def _show_progress(self, post: PostSend, shown: ShownPost, me: SlackIdentity) -> None:
        """Show what a turn does: in its stream, or else in the message that is edited."""
        if shown.streamed is not None:
            end = await self._streams.append(post, shown)
            if end is not None:
                shown.begin_next(end)
        if shown.ts is None and self._streams.may_begin(post):
            await self._streams.begin(post, shown, me)
            if shown.streamed is not None and shown.timer is None:
                self._watch(shown)
            if shown.streamed is not None and not self._streams.is_current(post, shown):
                raise PostDelayed("the text continues in another message", retry_after=self._pace)
        if shown.streamed is None:
            # A part that an earlier run finished becomes the progress: the answer starts there.
            shown.is_answer = False
            await self._edit(post, shown)

    def _watch(self, shown: ShownPost) -> None:
        assert shown.post is not None
        name = f"{shown.post.marker}, end"
        shown.timer = self._tasks.start(self._end_in_time(shown), name=name)

    async def _end_in_time(self, shown: ShownPost) -> None:
        """End the streams of a post before Slack does, then show the progress by edits."""
        while shown.streamed is not None:
            now = self._clock.monotonic()
            left, silent = shown.began + STREAM_SECONDS - now, now - shown.called_at
            if left <= 0:
                await self._touch(shown, self._streams.retire)
            elif silent >= KEEP_SECONDS:
                await self._touch(shown, self._streams.touch)
            else:
                await self._clock.sleep(min(left, KEEP_SECONDS - silent))
        await self._clock.sleep(self._pace)
        async with shown.lock:
            shown.timer = None
            if shown.streamed is not None:
                self._watch(shown)
            elif shown.post and not shown.is_complete and shown.post.content.state not in FINAL:
                try:
                    await self._edit(shown.post, shown)
                except PostError as error:
                    logger.info("%s", error)  # the next progress shows it

    async def _touch(
        self, shown: ShownPost, how: Callable[[PostSend, ShownPost], Awaitable[None]]
    ) -> None:
        """Call Slack for a stream without news; nothing waits for that."""
        async with shown.lock:
            if shown.streamed is None or shown.post is None:
                return
            pause = 0.0
            try:
                await how(shown.post, shown)
            except PostDelayed as error:
                pause = error.retry_after or self._pace
            except PostError as error:
                logger.info("%s", error)
                shown.streamed, shown.maybe_streaming = None, True
        await self._clock.sleep(pause)

    async def _edit(self, post: PostSend, shown: ShownPost) -> None:
        """Show the progress in a message that is edited."""
        channel, _ = channel_and_thread(post.target.external)
        content = post.content
        level = render.verbosity(content, channel)
        if shown.maybe_streaming and shown.ts is not None:
            await self._streams.end(post, shown)
        blocks = render.progress(content, shown.start, level, seal=self._seal.close)
        await self._writer.put(post, shown, blocks, yields=True)

    async def _finish(self, post: PostSend, shown: ShownPost) -> None:
        """Show the answer so that people are notified of it, then reduce the progress."""
        if shown.streamed is not None:
            self._keep_pace(shown.called_at)
            await self._finish_stream(post, shown)
        if not shown.is_complete:
            if post.content.state != "stopped":
                shown.turn_to_answer()
            await self._answer(post, shown)
        if shown.progress is not None:
            self._keep_pace(shown.progress_called_at)
            await self._reduce(post, shown)

    def _keep_pace(self, called_at: float) -> None:
        wait = called_at + self._pace - self._clock.monotonic()
        if wait > 0:
            raise PostDelayed("one call per message per second", retry_after=wait)

    async def _finish_stream(self, post: PostSend, shown: ShownPost) -> None:
        content = post.content
        # A streamed message that has all that was said is reduced to the answer.
        has_more = bool(content.narrated or render.lead(content))
        rewritten = has_more and shown.start <= content.narrated
        below = self._below(post, shown)
        end = await self._streams.finish(post, shown, below, rewritten=rewritten)
        if end is not None:
            shown.begin_next(end)
            raise PostDelayed("the answer continues in another message", retry_after=self._pace)
        shown.is_complete = shown.is_answer and not rewritten

    async def _answer(self, post: PostSend, shown: ShownPost) -> None:
        """Write the answer, message by message, from where it is not shown yet."""
        content = post.content
        while True:
            # The first line of an answer is in the message in which it begins.
            above = render.lead(content) if shown.start <= content.narrated else []
            below = self._below(post, shown)
            if self._uploads and shown.messages >= MESSAGES and shown.ts is None:
                await self._write_rest(post, shown)
                break
            if shown.ts is not None:
                self._keep_pace(shown.called_at)
            size = shown.size - render.weigh_blocks([*above, *below])
            begin = max(shown.start, content.narrated)
            end = text.part_end(content.text, begin, begin, size)
            if not await self._write_part(post, shown, end, above, below):
                continue
            if end is None:
                break
            shown.begin_next(end)
            raise PostDelayed("the answer continues in another message", retry_after=self._pace)
        shown.is_complete = True

    async def _write_part(
        self,
        post: PostSend,
        shown: ShownPost,
        end: int | None,
        above: list[dict[str, Any]],
        below: list[dict[str, Any]],
    ) -> bool:
        """Write one message of the answer; False if Slack refused its form: another is tried."""
        if shown.maybe_streaming and shown.ts is not None and not shown.is_answer:
            await self._streams.end(post, shown)
        begin = max(shown.start, post.content.narrated)
        words = text.piece(post.content.text, begin, end)
        blocks = [*above, *render.answer(words, below if end is None else [])]
        shown.is_answer = True
        rest = len(post.content.text) - begin
        try:
            await self._writer.put_blocks(post, shown, blocks)
        except SlackRefused as error:
            if error.error not in BAD_FORM:
                raise
            logger.warning("%s; sending the answer in another form", error)
            if shown.can_be_rated and end is None:
                shown.can_be_rated = False  # perhaps this Slack has no such buttons
                return False
            if rest > SMALLEST_PART and shown.size > SMALLEST_PART:
                shown.size //= 2
                return False
            if rest > SMALLEST_PART and self._uploads and shown.ts is None:
                shown.messages = MESSAGES
                return False
            await self._writer.put_verbatim(post, shown, blocks)
        return True

    def _below(self, post: PostSend, shown: ShownPost) -> list[dict[str, Any]]:
        """Render what is below an answer."""
        blocks = render.ending(post.content)
        if shown.can_be_rated and post.content.state == "done":
            blocks.append(render.feedback(post.marker, self._seal.close))
        return blocks

    async def _write_rest(self, post: PostSend, shown: ShownPost) -> None:
        """Send what is left when the answer has used all its messages: a long rest as a file."""
        rest = post.content.text[max(shown.start, post.content.narrated) :]
        if shown.uploaded:
            return
        below = self._below(post, shown)
        if text.weigh(rest) <= min(shown.size, SMALLEST_PART):
            await self._writer.put(post, shown, render.answer(text.piece(rest, 0, None), below))
            return
        channel, thread = channel_and_thread(post.target.external)
        name = f"answer-{post.marker}.{shown.start}.md"
        words = render.words_below(post.content)
        comment = "\n".join(filter(None, (REST_IN_FILE, words)))
        try:
            number = await self._api.put(name, rest.encode())
            await self._api.share({number: name}, channel=channel, thread=thread, comment=comment)
        except (SlackRefused, PlatformFileRefused) as error:
            if isinstance(error, SlackRefused) and error.error in PLACE_GONE:
                raise
            logger.warning("%s; long answers use more messages instead", error)
            self._uploads = False
            raise PostDelayed("the answer continues in another message") from error
        shown.uploaded = True

    async def _reduce(self, post: PostSend, shown: ShownPost) -> None:
        """Reduce the message that showed the progress to that: the answer is below it."""
        channel, _ = channel_and_thread(post.target.external)
        level = render.verbosity(post.content, channel)
        old = ShownPost(ts=shown.progress, start=shown.progress_start)
        try:
            if shown.maybe_streaming:
                await self._streams.end(post, old)
                shown.maybe_streaming, shown.progress_called_at = False, self._clock.monotonic()
                self._keep_pace(shown.progress_called_at)
            blocks = render.reduced(post.content, level)
            await self._api.call(
                "chat.update",
                channel=channel,
                ts=old.ts,
                text=render.summary(post.content),
                blocks=render.verbatim(blocks) if shown.refusals else blocks,
            )
        except SlackRefused as error:
            if error.error not in GONE:
                self._retry_later(post, shown, error)
            logger.info("%s", error)  # the answer is there
