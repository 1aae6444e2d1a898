"""Fetches what people put into issues and comments, and uploads what agents made for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.core.files.names import HEAD_BYTES, picture_type
from app.core.posts import MadeFile
from app.core.types import File
from app.errors import PostError, PostRejected, ServiceRefused
from app.services.linear.api import LinearApi, UploadFailed
from app.services.linear.events import upload_path

logger = logging.getLogger(__name__)

FILE_BYTES: Final = 20 * 1024 * 1024
"""What one file may hold: as much as on the page."""
FETCH_SECONDS: Final = 60.0
"""How long an agent waits for one file before it begins without it."""
UPLOAD_SECONDS: Final = 25.0
"""What one file may take on its way to Linear: an answer with two of them still fits into the time
that the outbox gives a post."""
UPLOAD_TRIES: Final = 3
"""How often a file is sent that does not arrive: the answer must not wait for it for ever."""


async def fetched(api: LinearApi, uploads: Path, file: File) -> File:
    """Lay a file into the uploads, or a note in its place that says why it is not there."""
    target = uploads / file.url
    if await asyncio.to_thread(target.is_file):
        return await asyncio.to_thread(_looked_at, file, target)
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            content = await api.download(upload_path(file), most=FILE_BYTES)
    except (PostError, ServiceRefused, TimeoutError) as error:
        why = str(error) or f"it took longer than {FETCH_SECONDS:g} s"
        logger.warning("%s could not be fetched from Linear: %s", file.name, why)
        words = f"{file.name} was attached, but could not be fetched from Linear: {why}\n"
        note = target.with_name(f"{target.name}.missing.txt")
        await asyncio.to_thread(_keep, note, words.encode())
        return replace(
            file, name=note.name, media_type="text/plain", url=f"{note.parent.name}/{note.name}"
        )
    await asyncio.to_thread(_keep, target, content)
    return await asyncio.to_thread(_looked_at, file, target)


class Made:
    """What one agent made and Linear keeps; each file goes up once, however often a post is."""

    def __init__(self, api: LinearApi, uploads: Path) -> None:
        self._api = api
        self._uploads = uploads
        self._assets: dict[str, str] = {}
        """Where a file is that a post is waiting to name: at Linear, else on the page."""
        self._failures: dict[str, int] = {}

    async def shown(self, files: Sequence[MadeFile]) -> tuple[MadeFile, ...]:
        """Have Linear keep files; one that does not get there stays where the page gives it out.

        Raises:
            PostDelayed: not now.
            ServiceRefused: not with these credentials.
        """
        return tuple([replace(file, link=await self._address(file)) for file in files])

    def forget(self, files: Sequence[MadeFile]) -> None:
        """Let go of files that a post names by now."""
        for file in files:
            self._assets.pop(file.url, None)
            self._failures.pop(file.url, None)

    async def _address(self, file: MadeFile) -> str:
        if file.url not in self._assets:
            try:
                self._assets[file.url] = await self._sent(file)
            except (PostRejected, UploadFailed, OSError) as error:
                failures = self._failures[file.url] = self._failures.get(file.url, 0) + 1
                if isinstance(error, UploadFailed) and failures < UPLOAD_TRIES:
                    raise
                logger.warning("%s could not be sent to Linear: %s", file.name, error)
                self._assets[file.url] = file.link
        return self._assets[file.url]

    async def _sent(self, file: MadeFile) -> str:
        """Send a file; returns where Linear keeps it."""
        content = await asyncio.to_thread((self._uploads / file.url).read_bytes)
        async with asyncio.timeout(UPLOAD_SECONDS):
            return await self._api.upload(file.name, file.media_type, content)


def _looked_at(file: File, path: Path) -> File:
    """Say what a file is: a picture by its bytes, since many are called nothing at all."""
    with path.open("rb") as kept:
        return replace(file, media_type=picture_type(kept.read(HEAD_BYTES)) or file.media_type)


def _keep(path: Path, content: bytes) -> None:
    """Write a file under another name first: half of it must never be taken for the whole.

    That name is nobody else's: two agents that are asked about a picture fetch it at once.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{uuid4().hex}.part")
    part.write_bytes(content)
    part.replace(path)
