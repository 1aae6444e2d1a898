"""Stores attachments, each file in a folder with an unguessable name, and serves them.

A file is never more than data: it is shown only if its first bytes are those of a picture, and
nothing inside it can run.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, Depends
from fastapi.responses import FileResponse, Response
from starlette.datastructures import UploadFile

from app.descent import discard, remove
from app.errors import BridgeError, NotFound
from app.model.text import HEAD_BYTES, UNKNOWN, picture_type, safe_name
from app.server.login import Visitor, visitor
from app.server.site import RuntimeOf
from app.services.web.events import SaidFile

FILES: Final = 10
"""The most files of one message."""
FILE_BYTES: Final = 20 * 1024 * 1024
"""The largest file: any screenshot, most documents."""
PIECE_BYTES: Final = 256 * 1024

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,80}")

router = APIRouter(include_in_schema=False)


class TooLarge(BridgeError):
    """A file is too large to attach."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is larger than {FILE_BYTES // 1024 // 1024} MB")


async def keep(folder: Path, files: list[UploadFile]) -> tuple[SaidFile, ...]:
    """Store the files of one message.

    Raises:
        TooLarge: one of them is.
        OSError: one of them cannot be written.
    """
    kept: list[SaidFile] = []
    try:
        for file in files:
            kept.append(await asyncio.to_thread(_keep, folder, file))  # noqa: PERF401 - see below
    except BaseException:
        for each in kept:
            await asyncio.to_thread(discard, (folder / each.url).parent)
        raise
    return tuple(kept)


def forget(folder: Path, named: Set[str], unread: Sequence[bytes], *, before: float) -> int:
    """Remove older files that belong to no message, neither stored nor incoming."""
    gone = 0
    for each in folder.iterdir() if folder.is_dir() else ():
        with suppress(OSError):  # it was removed meanwhile, or cannot be removed
            files = [f"{each.name}/{file.name}" for file in each.iterdir()]
            waits = any(each.name.encode() in body for body in unread)
            if each.stat().st_mtime < before and not waits and named.isdisjoint(files):
                remove(each)
                gone += 1
    return gone


@router.get("/uploads/{folder}/{name}")
async def read_upload(
    runtime: RuntimeOf, _who: Annotated[Visitor, Depends(visitor)], folder: str, name: str
) -> Response:
    """Serve an attachment."""
    path = runtime.uploads / folder / name
    if not folder.isalnum() or name != safe_name(name) or not await asyncio.to_thread(path.is_file):
        raise NotFound("file", name)
    shown = await asyncio.to_thread(_picture_of, path)
    return FileResponse(
        path,
        media_type=shown or UNKNOWN,
        filename=name,
        content_disposition_type="inline" if shown else "attachment",
        headers={
            "Cache-Control": "private, max-age=86400",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        },
    )


def _keep(uploads: Path, file: UploadFile) -> SaidFile:
    name = safe_name(file.filename or "")
    folder = uploads / secrets.token_hex(16)
    folder.mkdir(mode=0o700, parents=True)
    path = folder / name
    size = 0
    with path.open("xb") as kept:
        while piece := file.file.read(PIECE_BYTES):
            size += len(piece)
            if size > FILE_BYTES:
                break
            kept.write(piece)
    if size > FILE_BYTES:
        path.unlink()
        folder.rmdir()
        raise TooLarge(name)
    claimed = (file.content_type or "").partition(";")[0].strip().lower()
    media_type = claimed if _MEDIA_TYPE.fullmatch(claimed) else UNKNOWN
    shown = _picture_of(path)
    return SaidFile(
        name=name,
        # Bytes decide what is a picture; a file that only claims to be one is a plain file.
        media_type=shown or (media_type if not media_type.startswith("image/") else "text/plain"),
        url=f"{folder.name}/{name}",
    )


def _picture_of(path: Path) -> str | None:
    with path.open("rb") as file:
        return picture_type(file.read(HEAD_BYTES))
