"""Uploads the files that agents made to Linear."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.errors import PostRejected
from app.model.posts import MadeFile
from app.services.linear.api import LinearApi, UploadFailed

logger = logging.getLogger(__name__)

UPLOAD_SECONDS: Final = 25.0
"""Time limit for one file: an answer with two files still fits into the time that the outbox gives
a post."""
UPLOAD_TRIES: Final = 3
"""Maximum attempts to upload a file: the answer must not wait for it forever."""


class Uploader:
    """Uploads the files one agent made; each file once, even if its post is retried."""

    def __init__(self, api: LinearApi, uploads: Path) -> None:
        self._api = api
        self._uploads = uploads
        self._assets: dict[str, str] = {}
        """The address of each file that a post will name: at Linear, else on the page."""
        self._failures: dict[str, int] = {}

    async def upload(self, files: Sequence[MadeFile]) -> tuple[MadeFile, ...]:
        """Upload files to Linear; one that cannot be uploaded keeps its link to the page.

        Raises:
            PostDelayed: not now.
            ServiceRefused: not with these credentials.
        """
        return tuple([replace(file, link=await self._upload_once(file)) for file in files])

    def forget(self, files: Sequence[MadeFile]) -> None:
        """Forget files that a post has named."""
        for file in files:
            self._assets.pop(file.url, None)
            self._failures.pop(file.url, None)

    async def _upload_once(self, file: MadeFile) -> str:
        if file.url not in self._assets:
            try:
                self._assets[file.url] = await self._upload(file)
            except (PostRejected, UploadFailed, OSError) as error:
                failures = self._failures[file.url] = self._failures.get(file.url, 0) + 1
                if isinstance(error, UploadFailed) and failures < UPLOAD_TRIES:
                    raise
                logger.warning("cannot upload %s to Linear: %s", file.name, error)
                self._assets[file.url] = file.link
        return self._assets[file.url]

    async def _upload(self, file: MadeFile) -> str:
        """Upload a file; returns its address at Linear."""
        content = await asyncio.to_thread((self._uploads / file.url).read_bytes)
        async with asyncio.timeout(UPLOAD_SECONDS):
            return await self._api.upload(file.name, file.media_type, content)
