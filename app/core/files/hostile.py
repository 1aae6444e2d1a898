"""Reads files of somebody who may be hostile: plain ones, never by a link, never too much."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from app.core.files.names import size_words

FILE_BYTES: Final = 20 * 1024 * 1024
"""What one file may hold: as much as people may attach."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened that may have become a link meanwhile."""


class NotTaken(Exception):
    """Why a file is not taken, in words for people."""


def unfit(found: os.stat_result) -> str:
    """Say why something is no file to take; nothing if it is one."""
    if stat.S_ISDIR(found.st_mode):
        return "it is a folder, and only files are sent"
    if not stat.S_ISREG(found.st_mode):
        return "it is no plain file"
    if not found.st_size:
        return "it is empty"
    return _too_large(found.st_size) if found.st_size > FILE_BYTES else ""


@contextmanager
def opened_inside(root: Path, path: PurePosixPath) -> Iterator[int]:
    """Open a plain file below a folder, step by step, so that no link leads anywhere else."""
    here = os.open(root, FOLDER)
    try:
        *folders, name = path.parts or ("",)
        if ".." in path.parts:
            raise NotTaken("it is not in the agent's folder")
        for step in folders:
            above, here = here, os.open(step, FOLDER, dir_fd=here)
            os.close(above)
        file = os.open(name, _READ, dir_fd=here)
    except OSError as error:
        raise NotTaken(f"it cannot be read ({error.strerror})") from error
    finally:
        os.close(here)
    try:
        if why := unfit(os.fstat(file)):
            raise NotTaken(why)
        yield file
    finally:
        os.close(file)


def read(file: int) -> bytes:
    """Read a file to its end, unless that never comes."""
    data = bytearray()
    while piece := os.read(file, 1024 * 1024):
        data += piece
        if len(data) > FILE_BYTES:
            raise NotTaken(_too_large(len(data)))
    return bytes(data)


def _too_large(size: int) -> str:
    return f"it holds {size_words(size)}, and at most {size_words(FILE_BYTES)} are sent"
