"""Fetches what people put into issues and comments, when an agent needs it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.core.types import File
from app.errors import PostError, ServiceRefused
from app.services.linear.api import LinearApi
from app.services.linear.events import upload_path

logger = logging.getLogger(__name__)

FILE_BYTES: Final = 20 * 1024 * 1024
"""What one file may hold: as much as on the page."""


async def fetched(api: LinearApi, uploads: Path, file: File) -> File:
    """Lay a file into the uploads, or a note in its place that says why it is not there."""
    target = uploads / file.url
    if await asyncio.to_thread(target.is_file):
        return file
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
    return file


def _keep(path: Path, content: bytes) -> None:
    """Write a file under another name first: half of it must never be taken for the whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
