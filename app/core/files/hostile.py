"""Reads files from possibly hostile agents: only regular files, never through a link, bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from app.core.files import wording
from app.model.text import size_words

FILE_BYTES: Final = 20 * 1024 * 1024
"""Size limit of one file, the same as for attachments."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
"""Opens a folder that may have become a link meanwhile."""


class NotTaken(Exception):
    """The reason why a file is refused, worded for people."""


def unfit(found: os.stat_result) -> str:
    """Say why a file is refused; empty if it is accepted."""
    if stat.S_ISDIR(found.st_mode):
        return wording.FILE_IS_FOLDER
    if not stat.S_ISREG(found.st_mode):
        return wording.FILE_IRREGULAR
    if found.st_nlink > 1:
        return wording.FILE_LINKED
    if not found.st_size:
        return wording.FILE_EMPTY
    return _too_large(found.st_size) if found.st_size > FILE_BYTES else ""


@contextmanager
def open_inside(root: Path, path: PurePosixPath) -> Iterator[int]:
    """Open a regular file below a folder, step by step, so that no link leads out of it."""
    here = os.open(root, FOLDER)
    try:
        *folders, name = path.parts or ("",)
        if ".." in path.parts:
            raise NotTaken(wording.FILE_OUTSIDE)
        for step in folders:
            above, here = here, os.open(step, FOLDER, dir_fd=here)
            os.close(above)
        file = os.open(name, _READ, dir_fd=here)
    except OSError as error:
        raise NotTaken(wording.FILE_UNREADABLE.format(cause=error.strerror)) from error
    finally:
        os.close(here)
    try:
        if why := unfit(os.fstat(file)):
            raise NotTaken(why)
        yield file
    finally:
        os.close(file)


def read(file: int) -> bytes:
    """Read a file to its end, up to the size limit."""
    data = bytearray()
    while piece := os.read(file, 1024 * 1024):
        data += piece
        if len(data) > FILE_BYTES:
            raise NotTaken(_too_large(len(data)))
    return bytes(data)


def _too_large(size: int) -> str:
    return wording.FILE_TOO_LARGE.format(size=size_words(size), limit=size_words(FILE_BYTES))
