"""Fetches what people attach on Slack into the folder of uploads, when an agent needs it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.core.types import File
from app.errors import PostError
from app.services.slack.api import SlackApi
from app.services.slack.events import file_id

logger = logging.getLogger(__name__)

FILE_BYTES: Final = 20 * 1024 * 1024
"""What one file may hold: as much as on the page."""


async def fetched(api: SlackApi, uploads: Path, file: File) -> File:
    """Lay a file into the uploads, or a note in its place that says why it is not there."""
    path = uploads / file.url
    if await asyncio.to_thread(path.is_file):
        return file
    await asyncio.to_thread(path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
    # Under a name of its own first: half a file must never be taken for the whole, and two agents
    # that are shown the same file fetch it at the same time.
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        info = (await api.read("files.info", file=file_id(file)))["file"]
        url = info.get("url_private_download") or info["url_private"]
        await api.download(url, part, most=FILE_BYTES)
        await asyncio.to_thread(part.replace, path)
    except (PostError, KeyError) as error:
        logger.warning("%s could not be fetched from Slack: %s", file.name, error)
        note = path.with_name(f"{path.name}.missing.txt")
        words = f"{file.name} was attached, but could not be fetched from Slack: {error}\n"
        await asyncio.to_thread(note.write_text, words)
        return replace(
            file, name=note.name, media_type="text/plain", url=f"{path.parent.name}/{note.name}"
        )
    finally:
        part.unlink(missing_ok=True)
    return file
