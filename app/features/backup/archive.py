"""Packs files into a sealed archive, and a list of them as its last file.

Every name is in it once, after the folder that it is in. Links are stored as links and never
followed, holes as holes; what changes, moves or goes while it is read does no harm.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import stat
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final, cast

from app.descent import Found, walk
from app.errors import BackupUnusable
from app.features.backup.stream import SealedWriter, Secret

LIST: Final = "contents.json"
SPARSE: Final = "AGENTBRIDGE.sparse"
"""The field of a file's header that has its size and, as JSON, the parts that are stored."""
NAME_BYTES: Final = 8192
"""The longest name that is packed, twice as long as a path may be: each is kept in memory."""
HOLE_BYTES: Final = 1024 * 1024
"""The smallest hole that is left out: a file of 8 GiB has at most some thousand parts."""
_BLOCK: Final = 512
"""The unit of `st_blocks` on every file system."""


@dataclass(slots=True)
class ArchiveContents:
    """What an archive says about itself."""

    created_at: float
    release: str
    database: str
    """`sqlite` or `postgresql`."""
    revision: str
    """The migration of the database."""
    key: str
    """A mark of the secret key that values in the database are sealed with."""
    rows: dict[str, int] = field(default_factory=dict)
    """How many rows each table has."""
    files: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of each file."""
    missing: list[str] = field(default_factory=list)
    """Files that could not be read."""


class Packer:
    """Adds files to an archive."""

    def __init__(self, tar: tarfile.TarFile, contents: ArchiveContents) -> None:
        self._tar = tar
        self.contents = contents

    def add_bytes(self, name: str, data: bytes) -> None:
        """Add a file that only its owner reads."""
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = len(data), 0o600, int(time.time())
        self.contents.files[name] = hashlib.sha256(data).hexdigest()
        self._tar.addfile(info, io.BytesIO(data))

    def finish(self) -> None:
        """Add the list of what was added."""
        data = json.dumps(asdict(self.contents)).encode()
        info = tarfile.TarInfo(LIST)
        info.size = len(data)
        self._tar.addfile(info, io.BytesIO(data))

    def add_open(self, name: str, file: IO[bytes], found: os.stat_result) -> None:
        """Add an open file, as long as it was found to be."""
        info = _describe(name, found)
        parts = _find_data(file.fileno(), found)
        if parts != [(0, info.size)]:
            info.pax_headers = {SPARSE: json.dumps([info.size, parts])}
            info.size = sum(end - start for start, end in parts)
        exact = _Exact(file.fileno(), parts)
        self._tar.addfile(info, cast("IO[bytes]", exact))
        self.contents.files[name] = exact.digest.hexdigest()
        if exact.is_damaged:
            self.contents.missing.append(name)

    def add_tree(
        self,
        name: str,
        root: Path,
        leave_out: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        """Add a folder with all in it, but for paths below it that are to be left out."""

        def enter(found: Found) -> bool:
            return not leave_out(found.place) and self._is_short(f"{name}/{found.place}")

        def unread(path: PurePosixPath) -> None:
            self.contents.missing.append(f"{name}/{path}")

        self._tar.addfile(_describe(name, root.stat()))
        for found in walk(root, enter=enter, unread=unread):
            path = f"{name}/{found.place}"
            if found.entered is not None:
                self._tar.addfile(_describe(path, os.fstat(found.entered)))
            elif not found.is_folder and not leave_out(found.place) and self._is_short(path):
                self._add_entry(path, found)

    def _is_short(self, name: str) -> bool:
        is_short = len(os.fsencode(name)) <= NAME_BYTES
        if not is_short:
            self.contents.missing.append(name)
        return is_short

    def _add_entry(self, name: str, found: Found) -> None:
        try:
            entry = _take(name, found)
        except FileNotFoundError:
            return  # gone meanwhile
        except OSError:
            self.contents.missing.append(name)
            return
        # From here on an error is one of writing, which ends the backup.
        if isinstance(entry, tarfile.TarInfo):
            self._tar.addfile(entry)
        elif entry is not None:
            with entry:
                self.add_open(name, entry, os.fstat(entry.fileno()))


class _Exact:
    """Reads exactly some parts of a file that others may change, and their checksum."""

    def __init__(self, file: int, parts: list[tuple[int, int]]) -> None:
        self._file = file
        self._parts = parts[::-1]
        self.digest = hashlib.sha256()
        self.is_damaged = False

    def read(self, size: int) -> bytes:
        """Read bytes; where the file has become shorter or cannot be read, zeros."""
        data = b""
        while self._parts and len(data) < size:
            start, end = self._parts.pop()
            till = min(end, start + size - len(data))
            if till < end:
                self._parts.append((till, end))
            data += self._read(start, till - start).ljust(till - start, b"\0")
        self.digest.update(data)
        return data

    def _read(self, start: int, size: int) -> bytes:
        try:
            return os.pread(self._file, size, start)
        except OSError:
            self.is_damaged = True
            return b""


def _take(name: str, found: Found) -> tarfile.TarInfo | BinaryIO | None:
    """Describe a link, open a plain file; None if it is something else that is not packed.

    Raises:
        OSError: it cannot be read, or became a folder meanwhile.
    """
    status = found.stat()
    if stat.S_ISREG(status.st_mode):
        return found.open()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(name)
    if not stat.S_ISLNK(status.st_mode):
        return None
    link = _describe(name, status)
    link.type, link.linkname = tarfile.SYMTYPE, os.readlink(found.name, dir_fd=found.folder)
    return link


def _find_data(file: int, found: os.stat_result) -> list[tuple[int, int]]:
    """List the parts of a file between its large holes, each from where to where."""
    size = found.st_size
    if found.st_blocks * _BLOCK >= size:
        return [(0, size)]
    parts: list[tuple[int, int]] = []
    end = 0
    try:
        while end < size:
            start = os.lseek(file, end, os.SEEK_DATA)
            if start >= size:
                break
            end = min(os.lseek(file, start, os.SEEK_HOLE), size)
            before = parts.pop() if parts and start - parts[-1][1] < HOLE_BYTES else (start, start)
            parts.append((before[0], end))
    except OSError as error:
        if error.errno != errno.ENXIO:  # there is no more data
            return [(0, size)]
    return parts


def _describe(name: str, found: os.stat_result) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = stat.S_IMODE(found.st_mode), int(found.st_mtime)
    info.uid, info.gid = found.st_uid, found.st_gid
    if stat.S_ISDIR(found.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISREG(found.st_mode):
        info.size = found.st_size
    return info


@contextmanager
def packing(target: Path, secret: Secret, contents: ArchiveContents) -> Iterator[Packer]:
    """Write an archive; it appears under its name when it is whole.

    Raises:
        BackupUnusable: there is such a file.
        OSError: it cannot be written.
    """
    if os.path.lexists(target):
        raise BackupUnusable(f"{str(target)!r} is there already: give another name")
    draft = target.with_name(f".{target.name}.part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
            sealed = SealedWriter(file, secret)
            with tarfile.open(fileobj=cast("IO[bytes]", sealed), mode="w|gz") as tar:
                packer = Packer(tar, contents)
                yield packer
                packer.finish()
            sealed.finish()
            file.flush()
            os.fsync(file.fileno())
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)
