"""Packs files into a sealed archive, and a list of them as its last file.

Links are stored as links and never followed; what changes or goes while it is read does no harm.
"""

from __future__ import annotations

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
from typing import IO, Final, cast

from app.backup.stream import SealedWriter, Secret
from app.errors import BackupUnusable

LIST: Final = "contents.json"
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(slots=True)
class Contents:
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

    def __init__(self, tar: tarfile.TarFile, contents: Contents) -> None:
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
        exact = _Exact(file, info.size)
        self._tar.addfile(info, cast("IO[bytes]", exact))
        self.contents.files[name] = exact.digest.hexdigest()

    def add_tree(
        self,
        name: str,
        root: Path,
        leave_out: Callable[[PurePosixPath], bool] = lambda _path: False,
    ) -> None:
        """Add a folder with all in it, but for paths below it that are to be left out."""
        for folder, folders, files, handle in os.fwalk(root, follow_symlinks=False):
            here = PurePosixPath(Path(folder).relative_to(root))
            within = PurePosixPath(name) / here
            folders[:] = sorted(each for each in folders if not leave_out(here / each))
            self._tar.addfile(_describe(str(within), os.fstat(handle)))
            # `fwalk` lists links to folders with the folders, and does not enter them.
            for each in sorted((*files, *folders)):
                if not leave_out(here / each):
                    self._add_entry(str(within / each), each, handle)

    def _add_entry(self, name: str, entry: str, folder: int) -> None:
        try:
            found = os.stat(entry, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                link = _describe(name, found)
                link.type, link.linkname = tarfile.SYMTYPE, os.readlink(entry, dir_fd=folder)
                self._tar.addfile(link)
            elif stat.S_ISREG(found.st_mode):
                with open(os.open(entry, _READ, dir_fd=folder), "rb") as file:  # noqa: PTH123
                    self.add_open(name, file, os.fstat(file.fileno()))
        except FileNotFoundError:
            return  # gone meanwhile
        except OSError:
            self.contents.missing.append(name)


class _Exact:
    """Reads exactly so many bytes of a file that others may change, and their checksum."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size
        self.digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """Read bytes; where the file has become shorter, zeros."""
        wanted = min(size, self._left)
        data = self._file.read(wanted).ljust(wanted, b"\0")
        self._left -= wanted
        self.digest.update(data)
        return data


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
def packing(target: Path, secret: Secret, contents: Contents) -> Iterator[Packer]:
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
