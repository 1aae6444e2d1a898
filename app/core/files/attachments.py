"""Fetches attachments before they are placed next to a workspace."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.core.adapters import Adapter
from app.core.files import wording
from app.errors import PostError, ServiceRefused
from app.model.text import HEAD_BYTES, picture_type
from app.model.types import File, Session

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""Files fetched at once: people wait for them, and platforms limit requests."""
FILE_BYTES: Final = 20 * 1024 * 1024
"""Size limit of one attachment, the same as on the page."""
DOWNLOAD_SECONDS: Final = 60.0
"""How long an agent waits for one attachment before it starts without it."""


class Attachments:
    """Attachments that may still have to be fetched from their platform."""

    def __init__(self, adapters: Mapping[str, Adapter]) -> None:
        self._adapters = adapters

    async def fetched(self, session: Session, files: Sequence[File]) -> Sequence[File]:
        """Fetch the files that are not in the uploads yet."""
        source = self._adapters.get(session.key.adapter)
        if source is None:
            return files
        few = asyncio.Semaphore(AT_ONCE)

        async def fetch(file: File) -> File:
            async with few:
                return await source.fetch(file)

        return await asyncio.gather(*map(fetch, dict.fromkeys(files)))


class PlatformFileRefused(PostError):
    """The platform does not give out or accept a file."""


async def download(
    file: File, chunks: AsyncGenerator[bytes, None], uploads: Path, *, service: str
) -> File:
    """Store an attachment unless it is stored already; on failure store a note with the reason."""
    path = uploads / file.url
    try:
        async with asyncio.timeout(DOWNLOAD_SECONDS), aclosing(chunks):
            if not await asyncio.to_thread(path.is_file):
                await _store(path, _limit_size(chunks), _put_once)
    except (PostError, ServiceRefused, TimeoutError) as error:
        why = str(error) or wording.FILE_TOO_SLOW.format(seconds=DOWNLOAD_SECONDS)
        logger.warning("could not fetch %s from %s: %s", file.name, service, why)
        note = path.with_name(f"{path.name}.missing.txt")
        words = wording.NOT_FETCHED.format(name=file.name, service=service, why=why)
        await _store(note, _once(f"{words}\n".encode()), os.replace)
        url = f"{note.parent.name}/{note.name}"
        return replace(file, name=note.name, media_type="text/plain", url=url)
    return await asyncio.to_thread(_detect_picture, file, path)


async def _store(
    path: Path, chunks: AsyncIterator[bytes], put: Callable[[Path, Path], None]
) -> None:
    part = path.with_name(f"{uuid4().hex}.part")
    await asyncio.to_thread(path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
    part.touch()
    try:
        async for chunk in chunks:
            await asyncio.to_thread(_append, part, chunk)
        await asyncio.to_thread(put, part, path)
    finally:
        part.unlink(missing_ok=True)


def _append(part: Path, chunk: bytes) -> None:
    # On a timeout this thread goes on: it leaves no file open, and makes none that is removed.
    with part.open("r+b") as target:
        target.seek(0, os.SEEK_END)
        target.write(chunk)


def _put_once(part: Path, path: Path) -> None:
    with suppress(FileExistsError):
        os.link(part, path)


async def _limit_size(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > FILE_BYTES:
            raise PlatformFileRefused(f"it is larger than {FILE_BYTES // 1024 // 1024} MB")
        yield chunk


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _detect_picture(file: File, path: Path) -> File:
    """Set the media type of a picture by its first bytes: many have no telling name."""
    with path.open("rb") as stored:
        return replace(file, media_type=picture_type(stored.read(HEAD_BYTES)) or file.media_type)
