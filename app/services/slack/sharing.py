"""Shares the files an agent made: uploads them one by one, then shows them in one message.

A file is invisible until it is shared, and Slack knows whether it was: so each is shown exactly
once, even after a crash. Files that Slack rejects are named instead.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from app.core.files.download import FileRefused
from app.core.files.names import size_words
from app.core.posts import MadeFile, PostSend, PostSent
from app.services.slack import render
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread
from app.services.slack.posting import PLACE_GONE, metadata

logger = logging.getLogger(__name__)

_FILE_ID: Final = "F"
"""Prefix of file ids; the id of a message is a time."""


class Sharer:
    """The files of one agent's app."""

    def __init__(self, api: SlackApi, uploads: Path) -> None:
        self._api = api
        self._uploads = uploads

    async def send(self, post: PostSend) -> PostSent:
        """Take the next step of sharing files; raises what the API does."""
        sent = [] if post.remote_id is None else post.remote_id.split(",")
        if sent and not sent[0].startswith(_FILE_ID):
            return PostSent(sent[0])  # they are named already
        try:
            if len(sent) < len(post.content.files):
                sent.append(await self._put(post.content.files[len(sent)]))
                return PostSent(",".join(sent), unfinished=True)
            if not await self._is_shared(sent[0]):
                await self._share(post, sent)
        except (SlackRefused, FileRefused, OSError) as error:
            if isinstance(error, SlackRefused) and error.error in PLACE_GONE:
                raise
            logger.warning("cannot share files in %s: %s", post.target, error)
            return await self._name(post, error)
        return PostSent(",".join(sent))

    async def _put(self, file: MadeFile) -> str:
        content = await asyncio.to_thread((self._uploads / file.url).read_bytes)
        return await self._api.put(file.name, content)

    async def _is_shared(self, number: str) -> bool:
        """Ask Slack whether a file is shared: the answer to an earlier call may have been lost."""
        try:
            info = await self._api.read("files.info", file=number)
        except SlackRefused as error:
            logger.info("%s", error)  # it was not shared, or the app may not look at it
            return False
        return bool(info["file"].get("shares"))

    async def _share(self, post: PostSend, sent: list[str]) -> None:
        channel, thread = channel_and_thread(post.target.external)
        titles = [file.name for file in post.content.files]
        files = dict(zip(sent, titles, strict=True))
        await self._api.share(files, channel=channel, thread=thread)

    async def _name(self, post: PostSend, error: Exception) -> PostSent:
        """List the files, and say why they are not here."""
        channel, thread = channel_and_thread(post.target.external)
        lines = [_line(file) for file in post.content.files]
        why = render.escape(f"Couldn't send these files to Slack ({error}):")
        answer = await self._api.call(
            "chat.postMessage",
            channel=channel,
            thread_ts=thread,
            text="\n".join((why, *lines)),
            metadata=metadata(post, 0),
            unfurl_links=False,
            unfurl_media=False,
        )
        return PostSent(answer["ts"])


def _line(file: MadeFile) -> str:
    name = render.escape(file.name)
    return f"• {f'<{file.link}|{name}>' if file.link else name} ({size_words(file.size)})"
