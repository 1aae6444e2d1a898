"""Fetches what people put into issues and comments, and uploads what agents made for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.core.files.names import HEAD_BYTES, picture_type
from app.core.posts import MadeFile
from app.core.types import File
from app.errors import PostError, PostRejected, ServiceRefused
from app.services.linear.api import LinearApi
from app.services.linear.events import upload_path

logger = logging.getLogger(__name__)

FILE_BYTES: Final = 20 * 1024 * 1024
"""What one file may hold: as much as on the page."""


async def fetched(api: LinearApi, uploads: Path, file: File) -> File:
    """Lay a file into the uploads, or a note in its place that says why it is not there."""
    target = uploads / file.url
    if await asyncio.to_thread(target.is_file):
        return await asyncio.to_thread(_looked_at, file, target)
    try:
        content = await api.download(upload_path(file), most=FILE_BYTES)
    except (PostError, ServiceRefused) as error:
        logger.warning("%s could not be fetched from Linear: %s", file.name, error)
        words = f"{file.name} was attached, but could not be fetched from Linear: {error}\n"
        note = target.with_name(f"{target.name}.missing.txt")
        await asyncio.to_thread(_keep, note, words.encode())
        return replace(
            file, name=note.name, media_type="text/plain", url=f"{note.parent.name}/{note.name}"
        )
    await asyncio.to_thread(_keep, target, content)
    return await asyncio.to_thread(_looked_at, file, target)


class Made:
    """What one agent made and Linear keeps; each file goes up once, however often it is tried."""

    def __init__(self, api: LinearApi, uploads: Path) -> None:
        self._api = api
        self._uploads = uploads
        self._assets: dict[str, str] = {}
        """Where Linear keeps a file that a post is waiting to name."""

    async def shown(self, files: Sequence[MadeFile]) -> tuple[MadeFile, ...]:
        """Have Linear keep files; one that it refuses stays where the page gives it out.

        Raises:
            PostDelayed: not now.
            ServiceRefused: not with these credentials.
        """
        return tuple([replace(file, link=await self._address(file)) for file in files])

    def forget(self, files: Sequence[MadeFile]) -> None:
        """Let go of files that a post names by now."""
        for file in files:
            self._assets.pop(file.url, None)

    async def _address(self, file: MadeFile) -> str:
        if file.url not in self._assets:
            try:
                content = await asyncio.to_thread((self._uploads / file.url).read_bytes)
                asset = await self._api.upload(file.name, file.media_type, content)
            except (PostRejected, OSError) as error:
                logger.warning("%s could not be sent to Linear: %s", file.name, error)
                return file.link
            self._assets[file.url] = asset
        return self._assets[file.url]


def _looked_at(file: File, path: Path) -> File:
    """Say what a file is: a picture by its bytes, since many are called nothing at all."""
    with path.open("rb") as kept:
        return replace(file, media_type=picture_type(kept.read(HEAD_BYTES)) or file.media_type)


def _keep(path: Path, content: bytes) -> None:
    """Write a file under another name first: half of it must never be taken for the whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
