"""Marks the message that an agent answered, once it is done with it.

A mark is decoration: an app without the scope, or a message that is gone, is no error.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from app.clock import Clock
from app.errors import PostError
from app.model.posts import PostSend
from app.retry import retry
from app.services.slack.api import TRANSIENT, SlackApi
from app.services.slack.events import channel_and_thread
from app.tasks import Tasks

logger = logging.getLogger(__name__)

EMOJI: Final = {"done": "white_check_mark", "failed": "x"}
"""The mark of each end; a person who stops an agent needs none."""
PAUSES: Final = (5.0, 60.0)
_MESSAGE: Final = re.compile(r"\d+\.\d+")


class Reactions:
    """The marks of one agent's app."""

    def __init__(self, api: SlackApi, clock: Clock, agent: str) -> None:
        self._api = api
        self._clock = clock
        self._tasks = Tasks(f"slack reactions of {agent}")

    def mark(self, post: PostSend) -> None:
        """Mark the message that a finished turn answers."""
        emoji, message = EMOJI.get(post.content.state), post.content.message_id
        if emoji is not None and _MESSAGE.fullmatch(message):
            self._tasks.start(self._add(post, emoji), name=message)

    async def close(self) -> None:
        """Stop adding marks."""
        await self._tasks.close()

    async def _add(self, post: PostSend, emoji: str) -> None:
        channel, _ = channel_and_thread(post.target.external)

        async def add() -> None:
            await self._api.call(
                "reactions.add",
                yields=True,
                channel=channel,
                timestamp=post.content.message_id,
                name=emoji,
            )

        try:
            await retry(self._clock, add, PAUSES, on=TRANSIENT)
        except PostError as error:
            logger.debug("%s", error)
