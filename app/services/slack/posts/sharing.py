"""Shares the files an agent made: uploads them one by one, then shows them in one message.

A file is invisible until it is shared, and Slack knows whether it was: so each is shown exactly
once, even after a crash. Files that Slack rejects are named instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from app.core.files.download import FileRefused
from app.model.file_names import size_words
from app.model.posts import MadeFile, PostSend, PostSent
from app.services.slack import wording
from app.services.slack.api import SlackApi, SlackRefused
from app.services.slack.events import channel_and_thread
from app.services.slack.posts.errors import PLACE_GONE
from app.services.slack.posts.shown import metadata
from app.services.slack.text import escape

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
        files = [file for file in post.content.files if file.size]
        empty = [file for file in post.content.files if not file.size]
        try:
            if not files:
                return await self._name(post, empty, wording.NO_EMPTY_FILES)
            if len(sent) < len(files):
                sent.append(await self._put(files[len(sent)]))
                return PostSent(",".join(sent), unfinished=True)
            if not await self._is_shared(sent[0]):
                await self._share(post, dict(zip(sent, files, strict=True)), empty)
        except (SlackRefused, FileRefused, OSError) as error:
            if isinstance(error, SlackRefused) and error.error in PLACE_GONE:
                raise
            logger.warning("cannot share files in %s: %s", post.target, error)
            return await self._name(post, post.content.files, str(error))
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

    async def _share(
        self, post: PostSend, files: Mapping[str, MadeFile], empty: Sequence[MadeFile]
    ) -> None:
        channel, thread = channel_and_thread(post.target.external)
        titles = {number: file.name for number, file in files.items()}
        names = ", ".join(file.name for file in empty)
        comment = escape(wording.EMPTY_LEFT_OUT.format(names=names)) if empty else None
        await self._api.share(titles, channel=channel, thread=thread, comment=comment)

    async def _name(self, post: PostSend, files: Sequence[MadeFile], why: str) -> PostSent:
        """List the files, and say why they are not here."""
        channel, thread = channel_and_thread(post.target.external)
        words = escape(wording.FILES_NOT_SENT.format(why=why))
        answer = await self._api.call(
            "chat.postMessage",
            channel=channel,
            thread_ts=thread,
            text="\n".join((words, *map(_line, files))),
            metadata=metadata(post, 0),
            unfurl_links=False,
            unfurl_media=False,
        )
        return PostSent(answer["ts"])


def _line(file: MadeFile) -> str:
    name = escape(file.name)
    return f"• {f'<{file.link}|{name}>' if file.link else name} ({size_words(file.size)})"
