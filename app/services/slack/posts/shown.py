"""Holds how much of a post Slack shows, and finds it again by the marks on its messages.

Each message of a post carries the post's marker and the offset in the text where it begins; one
that holds a finished part of the answer says so. Progress is shown in a message of its own.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from app.model.keys import SessionKey
from app.model.posts import PostSend
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread
from app.services.slack.text import PART_CHARACTERS

logger = logging.getLogger(__name__)

EVENT_TYPE: Final = "agent_bridge_post"
ANSWER: Final = ".answer"
"""What follows the mark of a message that holds a finished part of the answer."""


@dataclass(slots=True)
class Shown:
    """How much of a post Slack shows."""

    ts: str | None = None
    """The message that is being written; None: the next one is not begun yet."""
    start: int = 0
    """Where in the text it begins."""
    is_answer: bool = False
    """Whether it holds a finished part of the answer, not progress."""
    progress: str | None = None
    """The message that shows the progress, once the answer is written below it."""
    progress_start: int = 0
    progress_called_at: float = float("-inf")
    streamed: int | None = None
    """How far the text was streamed into it; None: it is not a stream."""
    began: float = 0.0
    """When that stream began."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The cards that the stream shows."""
    messages: int = 0
    called_at: float = float("-inf")
    unsure: bool = False
    """Whether Slack may have made a message without confirming it."""
    maybe_streaming: bool = False
    """Whether an earlier run of the bridge may have left it as a stream."""
    uploaded: bool = False
    """Whether the rest was sent as a file."""
    is_complete: bool = False
    """Whether all of the answer is there."""
    size: int = PART_CHARACTERS
    """How much text one message takes; less after Slack refused one for its form."""
    can_be_rated: bool = True
    """Whether the answer has the buttons to rate it."""
    refusals: int = 0
    """How often Slack refused the answer for a reason that may pass."""
    post: PostSend | None = None
    """What it shows, as it was sent last."""
    timer: asyncio.Task[None] | None = None
    """Ends the stream in time."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def turn_to_answer(self) -> None:
        """Write the answer into new messages from here on: people are not notified of edits."""
        if self.ts is not None and not self.is_answer:
            self.progress, self.progress_start = self.ts, self.start
            self.progress_called_at, self.ts = self.called_at, None

    def begin_next(self, start: int) -> None:
        """Go on in another message."""
        self.ts, self.start, self.streamed, self.tasks = None, start, None, {}
        self.is_answer = False

    def adopt(self, found: Shown) -> None:
        """Take over what was found in the thread."""
        self.ts, self.start, self.is_answer = found.ts, found.start, found.is_answer
        self.progress, self.progress_start = found.progress, found.progress_start
        self.uploaded, self.messages = found.uploaded, found.messages
        self.streamed, self.maybe_streaming = None, True


def metadata(post: PostSend, start: int, *, is_answer: bool = False) -> dict[str, Any]:
    """Mark a message with its post and the offset in the text where it begins."""
    mark = f"{post.marker}.{start}{ANSWER if is_answer else ''}"
    return {"event_type": EVENT_TYPE, "event_payload": {"post": mark}}


async def search(api: SlackApi, target: SessionKey, marker: str) -> Shown | None:
    """Find what a thread shows of a post; raises what the API does."""
    channel, thread = channel_and_thread(target.external)
    try:
        messages = await api.replies(channel, thread, include_all_metadata="true")
    except SlackRefused as error:
        # If it matters, the next post there fails with it.
        logger.info("%s", error)
        return None
    mark = re.compile(rf"{re.escape(marker)}\.(\d+)({re.escape(ANSWER)})?")
    parts = {True: Shown(start=-1), False: Shown(start=-1)}
    found = Shown(maybe_streaming=True)
    for message in messages:
        marks = mark.findall(orjson.dumps(message).decode())
        if not marks:
            continue
        found.messages += 1
        if message.get("files"):
            found.uploaded = True
            continue
        # The cards of a message keep the mark that they had while it was written.
        start, is_answer = max((int(start), bool(answer)) for start, answer in marks)
        if start >= parts[is_answer].start:
            parts[is_answer] = Shown(message["ts"], start, is_answer)
    return _arrange(found, parts[True], parts[False]) if found.messages else None


def _arrange(found: Shown, answer: Shown, progress: Shown) -> Shown:
    """Tell the message that is being written from the one that shows the progress."""
    current = answer if answer.start >= progress.start else progress
    found.ts, found.start, found.is_answer = current.ts, max(current.start, 0), current.is_answer
    if current is answer:
        found.progress, found.progress_start = progress.ts, max(progress.start, 0)
    return found
