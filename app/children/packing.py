"""Packs the plain files of a folder whose content may be hostile, and unpacks them again.

Links are left out, in both directions: nothing is read or written outside of the folder.
"""

from __future__ import annotations

import hashlib
import logging
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Final

from app.children.tree import Tree
from app.descent import remove

logger = logging.getLogger(__name__)

PACKED_BYTES: Final = 256 * 1024**2
"""The most that is packed of one folder: homes hold a few megabytes, caches aside."""
_EVERYTHING: Final = PurePosixPath()


@dataclass(frozen=True, slots=True)
class _Like:
    """The mode and the age of a packed file."""

    st_mode: int
    st_mtime_ns: int

    @property
    def st_atime_ns(self) -> int:
        return self.st_mtime_ns


def name_content(folder: Path, left_out: Sequence[str] = ()) -> str:
    """Return a name that changes with the files of a folder; empty if there are none.

    Raises:
        OSError: it cannot be read, or there is too much in it.
    """
    if not folder.is_dir():
        return ""
    tree, seen, total = Tree(folder), hashlib.sha256(), 0
    found = False
    for file in _files(tree, left_out):
        status = tree.stat(file)
        if status is not None:
            found, total = True, total + status.st_size
            mode = status.st_mode & 0o100
            facts = (str(file), status.st_size, status.st_mtime_ns // 1000, mode)
            seen.update(repr(facts).encode(errors="surrogateescape"))
    if total > PACKED_BYTES:
        raise OSError(f"{folder.name} has {total // 1024**2} MiB, too much to be saved")
    return seen.hexdigest()[:40] if found else ""


def pack(folder: Path, into: Path, left_out: Sequence[str] = ()) -> None:
    """Pack the files of a folder.

    Raises:
        OSError: it cannot be read or written.
    """
    tree = Tree(folder)
    with tarfile.open(into, "w:gz", compresslevel=1) as archive:
        for file in _files(tree, left_out, partial(_tell, folder)):
            status = tree.stat(file)
            if status is None:
                continue  # a live agent may remove its own files
            content = tree.read(file)
            member = tarfile.TarInfo(str(file))
            member.size, member.mode = len(content), 0o600 | (status.st_mode & 0o100)
            member.mtime = status.st_mtime_ns // 1000 / 1e6
            archive.addfile(member, BytesIO(content))


def unpack(file: Path, folder: Path, user: int | None) -> None:
    """Put the packed files into a folder, and nothing else; `user` owns them, if given.

    Raises:
        OSError: it cannot be written, or the file is broken.
    """
    remove(folder)
    folder.mkdir(mode=0o700, parents=True)
    tree = Tree(folder, user=user)
    try:
        with tarfile.open(file, "r:gz") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is not None:
                    age = round(member.mtime * 1e6) * 1000
                    tree.write(PurePosixPath(member.name), content.read(), _Like(member.mode, age))
    except (tarfile.TarError, EOFError) as error:
        raise OSError(f"the saved files are broken: {error}") from error


def _tell(folder: Path, path: PurePosixPath) -> None:
    logger.warning("%s: not saved, since it could not be read: %s", folder.name, path)


def _files(
    tree: Tree,
    left_out: Sequence[str],
    unread: Callable[[PurePosixPath], None] = lambda _path: None,
) -> Iterator[PurePosixPath]:
    """List the plain files that are packed; `unread` is told of folders that could not be read."""
    apart = [PurePosixPath(each) for each in left_out]
    for file in tree.files(_EVERYTHING, unread):
        if not any(file.is_relative_to(each) for each in apart):
            yield file
