"""Streams a turn into a message, and ends the stream before Slack does.

Slack ends a stream five minutes after it began and then shows an error; people are notified when a
stream ends. So a stream ends with the answer, or in time and in true words.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from app.clock import Clock
from app.errors import PostDelayed
from app.markdown.writing import disarm
from app.model.posts import PostSend, Verbosity
from app.services.slack import cards, render, text, wording
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread, is_person
from app.services.slack.people import SlackIdentity
from app.services.slack.writing import (
    GONE,
    NO_STREAMS,
    NOT_STREAMING,
    PLACE_GONE,
    ShownPost,
    metadata,
)

logger = logging.getLogger(__name__)


STREAM_SECONDS: Final = 270.0
"""How long a stream is used: Slack ends it after 300 seconds, and shows an error."""

KEEP_SECONDS: Final = 20.0
"""After how long a silent stream is touched: Slack ends some that are idle for half a minute."""


class Streams:
    """The streams of one agent's app."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._allowed = True

    def may_begin(self, post: PostSend) -> bool:
        """Tell whether a new message can be a stream: a stream needs a person as recipient."""
        content = post.content
        return self._allowed and content.state != "queued" and is_person(content.asker)

    def is_current(self, post: PostSend, shown: ShownPost) -> bool:
        """Tell whether a stream shows all text that can be shown so far."""
        return shown.streamed == self._upto(post, shown)

    async def begin(self, post: PostSend, shown: ShownPost, me: SlackIdentity) -> None:
        """Begin a stream; where Slack refuses one, nothing is begun."""
        channel, thread = channel_and_thread(post.target.external)
        level = render.verbosity(post.content, channel)
        tasks = self._tasks(post, shown, level)
        upto = self._part_end(post, shown, 0) or self._upto(post, shown)
        words = text.piece(post.content.text[:upto], shown.start, None)
        try:
            answer = await self._api.call(
                "chat.startStream",
                yields=True,
                channel=channel,
                thread_ts=thread,
                recipient_user_id=post.content.asker,
                recipient_team_id=me.team,
                task_display_mode="plan" if level == "quiet" else "timeline",
                chunks=cards.chunks({}, tasks, words),
            )
        except SlackRefused as error:
            if error.error in PLACE_GONE:
                raise
            # Whether the workspace or the app lacks it, editing a message always works.
            logger.info("%s; editing a message instead of streaming", error)
            self._allowed = error.error not in NO_STREAMS
            return
        except PostDelayed as error:
            # Slack starts at most twenty streams a minute; people should not wait for that.
            logger.info("%s; editing a message instead of streaming", error)
            return
        shown.ts, shown.streamed, shown.tasks = answer["ts"], upto, tasks
        shown.messages += 1
        shown.began = shown.called_at = self._clock.monotonic()

    async def append(self, post: PostSend, shown: ShownPost) -> int | None:
        """Bring a stream up to date; returns where the next message begins if it is full."""
        end = self._part_end(post, shown, 0)
        if end is not None:
            return await self._settle(post, shown, end)
        upto = self._upto(post, shown)
        chunks, tasks = self._chunks(post, shown, upto)
        if not chunks:
            return None
        channel, _ = channel_and_thread(post.target.external)
        done = await self._try(
            shown, "chat.appendStream", yields=True, channel=channel, ts=shown.ts, chunks=chunks
        )
        if done:
            shown.streamed, shown.tasks = upto, tasks
        return None

    async def touch(self, post: PostSend, shown: ShownPost) -> None:
        """Keep a silent stream from being idle, and notice if Slack ended it all the same."""
        name = self._name(post, shown)
        chunks = cards.chunks({}, {name: shown.tasks[name]}, "")
        channel, _ = channel_and_thread(post.target.external)
        await self._try(
            shown, "chat.appendStream", yields=True, channel=channel, ts=shown.ts, chunks=chunks
        )

    async def finish(
        self,
        post: PostSend,
        shown: ShownPost,
        below: list[dict[str, Any]],
        *,
        rewritten: bool = False,
    ) -> int | None:
        """End a stream with the answer; returns where the next message begins if it is full.

        One that is `rewritten` afterwards need not hold all of it.
        """
        end = self._part_end(post, shown, render.weigh_blocks(below))
        if end is not None and not rewritten:
            return await self._settle(post, shown, end)
        upto = len(post.content.text) if end is None else shown.streamed or shown.start
        chunks, _ = self._chunks(post, shown, upto)
        await self._stop(post, shown, chunks, blocks=below, is_answer=True, status="active")
        return None

    async def retire(self, post: PostSend, shown: ShownPost) -> None:
        """End a stream before its time is over; the work goes on."""
        waits = post.content.state == "waiting"
        title = cards.word(post.content) if waits else wording.STILL_WORKING
        chunks, _ = self._chunks(post, shown, self._upto(post, shown), title)
        status = "suspended" if waits else "processing"
        blocks = None if waits else render.still_working()
        await self._stop(post, shown, chunks, blocks=blocks, status=status)

    async def end(self, post: PostSend, shown: ShownPost) -> None:
        """End what an earlier run of the bridge may have left as a stream."""
        channel, _ = channel_and_thread(post.target.external)
        tasks = self._tasks(post, shown, render.verbosity(post.content, channel))
        paused = cards.pause(tasks, self._name(post, shown), wording.STILL_WORKING)
        mark = metadata(post, shown.start)
        # A stream that does not take the cards must end all the same.
        for chunks in (cards.chunks(cards.only_output(paused), paused, ""), None):
            try:
                await self._api.call(
                    "chat.stopStream",
                    channel=channel,
                    ts=shown.ts,
                    chunks=chunks,
                    session_status="processing",
                    metadata=mark,
                )
            except SlackRefused as error:
                if error.error in PLACE_GONE:
                    raise
                if error.error not in NOT_STREAMING | GONE:
                    continue
            break
        shown.maybe_streaming = False

    async def _settle(self, post: PostSend, shown: ShownPost, end: int) -> int | None:
        """End a stream that is full: its part of the answer is finished."""
        chunks, _ = self._chunks(post, shown, end, wording.CONTINUED)
        await self._stop(post, shown, chunks, is_answer=True, status="processing")
        return end if shown.is_answer else None

    async def _stop(
        self,
        post: PostSend,
        shown: ShownPost,
        chunks: list[dict[str, Any]],
        *,
        status: str,
        blocks: list[dict[str, Any]] | None = None,
        is_answer: bool = False,
    ) -> None:
        channel, _ = channel_and_thread(post.target.external)
        done = await self._try(
            shown,
            "chat.stopStream",
            channel=channel,
            ts=shown.ts,
            chunks=chunks or None,
            blocks=blocks or None,
            session_status=status,
            metadata=metadata(post, shown.start, is_answer=is_answer),
        )
        if done:
            shown.streamed, shown.is_answer = None, is_answer

    async def _try(self, shown: ShownPost, method: str, **arguments: Any) -> bool:
        """Call a method of a stream; what a stream refuses, an edited message may accept."""
        try:
            await self._api.call(method, **arguments)
        except SlackRefused as error:
            if error.error in PLACE_GONE:
                raise
            logger.info("%s; editing the message instead", error)
            shown.streamed = None
            shown.maybe_streaming = error.error not in NOT_STREAMING | GONE
            return False
        shown.called_at = self._clock.monotonic()
        return True

    def _chunks(
        self, post: PostSend, shown: ShownPost, upto: int, paused: str = ""
    ) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        """Render what the stream does not show yet, up to some text; returns the cards too."""
        words, done = post.content.text, shown.streamed
        assert done is not None
        channel, _ = channel_and_thread(post.target.external)
        tasks = self._tasks(post, shown, render.verbosity(post.content, channel))
        if paused:
            tasks = cards.pause({**shown.tasks, **tasks}, self._name(post, shown), paused)
        elif post.content.state in cards.FINAL:
            tasks = cards.close({**shown.tasks, **tasks}, post.content)
        begun = text.opening(words, shown.start) if done == shown.start and upto > done else ""
        tail = text.closing(words, upto) if paused else ""
        before = text.opening(words, done)
        more = disarm(before + words[done:upto]).removeprefix(before)
        new = text.defang(begun + more + tail)
        return cards.chunks(shown.tasks, tasks, new), tasks

    def _tasks(
        self, post: PostSend, shown: ShownPost, level: Verbosity
    ) -> dict[str, dict[str, Any]]:
        listed = cards.tasks(post.content, level, self._name(post, shown))
        if not shown.start:
            return listed
        return cards.unfinished(listed, (*shown.tasks, self._name(post, shown)))

    def _name(self, post: PostSend, shown: ShownPost) -> str:
        """Name the card of the turn, by which a stream is found again before it ends."""
        return f"{post.marker}.{shown.start}"

    def _upto(self, post: PostSend, shown: ShownPost) -> int:
        """Tell how much text can be streamed while more may follow."""
        safe = text.safe_end(post.content.text)
        return max(shown.start, shown.streamed or 0, safe)

    def _part_end(self, post: PostSend, shown: ShownPost, below: int) -> int | None:
        """Tell where this message must end; None if all text fits into it."""
        size = shown.size - cards.CARDS_CHARACTERS - below
        done = shown.start if shown.streamed is None else shown.streamed
        return text.part_end(post.content.text, shown.start, done, size)
