"""Writes blocks into a message: changes the one that is there, or posts a new one.

What Slack cannot render is shown without Markdown and cards, and in the end as bare text.
"""

from __future__ import annotations

import logging
from typing import Any

from app.clock import Clock
from app.model.posts import PostSend
from app.services.slack import render
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread
from app.services.slack.posts.errors import BAD_FORM, GONE
from app.services.slack.posts.shown import Shown, metadata

logger = logging.getLogger(__name__)


class Writer:
    """The messages of one agent's app."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def put(
        self,
        post: PostSend,
        shown: Shown,
        blocks: list[dict[str, Any]],
        *,
        yields: bool = False,
    ) -> None:
        """Show blocks; if Slack cannot render an agent's text, show it verbatim."""
        try:
            await self.put_blocks(post, shown, blocks, yields=yields)
        except SlackRefused as error:
            if error.error not in BAD_FORM:
                raise
            logger.warning("%s; showing the text verbatim", error)
            await self.put_verbatim(post, shown, blocks)

    async def put_verbatim(
        self, post: PostSend, shown: Shown, blocks: list[dict[str, Any]]
    ) -> None:
        """Show blocks without Markdown and cards, and if that is refused too, without blocks."""
        verbatim = render.verbatim(blocks)
        try:
            await self.put_blocks(post, shown, verbatim)
        except SlackRefused as error:
            if error.error not in BAD_FORM:
                raise
            await self.put_blocks(post, shown, None, words=render.bare(verbatim))

    async def put_blocks(
        self,
        post: PostSend,
        shown: Shown,
        blocks: list[dict[str, Any]] | None,
        *,
        words: str = "",
        yields: bool = False,
    ) -> None:
        """Change the message if there is one, else post it."""
        channel, thread = channel_and_thread(post.target.external)
        content: dict[str, Any] = {
            "text": words or render.summary(post.content),
            "blocks": blocks,
            "metadata": metadata(post, shown.start, is_answer=shown.is_answer),
        }
        if shown.ts is not None:
            try:
                await self._api.call(
                    "chat.update", yields=yields, channel=channel, ts=shown.ts, **content
                )
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
