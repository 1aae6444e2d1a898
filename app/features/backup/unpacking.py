"""Checks archives byte by byte, and unpacks them: new files only, and nothing outside a folder.

What is checked is what unpacking relies on: an archive that passes can be unpacked.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final, Self, cast

from app.descent import FOLDER, Descent
from app.errors import BackupUnusable
from app.features.backup.archive import LIST, SPARSE, ArchiveContents
from app.features.backup.stream import SealedReader, Secret

BLOCK_BYTES: Final = 1024 * 1024
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check(source: Path, secret: Secret) -> ArchiveContents:
    """Check every byte and every name of an archive.

    Raises:
        BackupUnusable: it is damaged, incomplete, sealed in another way, or no one can unpack it.
    """
    return _read(source, secret, None)


def unpack(
    source: Path, secret: Secret, into: Path, apart: Mapping[str, Path] | None = None
) -> ArchiveContents:
    """Check an archive, then unpack it into an empty folder.

    `apart` has other empty folders for what is below some names.

    Raises:
        BackupUnusable: it is damaged, incomplete, sealed in another way, or no one can unpack it;
            then nothing is written.
        OSError: it cannot be unpacked.
    """
    check(source, secret)
    with _Target(into, apart or {}) as target:
        contents = _read(source, secret, target)
        target.finish()
    return contents


class _Names:
    """The names of an archive: each once, in a folder that was named before."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._folders = {""}

    def add(self, member: tarfile.TarInfo) -> None:
        """Take the next name.

        Raises:
            BackupUnusable: it is not one that a backup has.
        """
        name = member.name
        around, _, _ = name.rpartition("/")
        if "\0" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise BackupUnusable(f"it holds the name {name!r}")
        if name in self._known:
            raise BackupUnusable(f"it holds the name {name!r} twice")
        if around not in self._folders:
            raise BackupUnusable(f"it holds {name!r}, which is in no folder of it")
        if not (member.isreg() or member.isdir() or (member.issym() and around)):
            raise BackupUnusable(f"it holds {name!r}, which is no file, folder or link")
        self._known.add(name)
        if member.isdir():
            self._folders.add(name)


class _Target:
    """Makes files below folders; every one is opened on the way down, and no link is followed."""

    def __init__(self, into: Path, apart: Mapping[str, Path]) -> None:
        self._opened = ExitStack()
        self._into = self._opened.enter_context(Descent(into))
        self._apart = {
            name: self._opened.enter_context(Descent(folder)) for name, folder in apart.items()
        }
        self._folders: list[tarfile.TarInfo] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def open(self, member: tarfile.TarInfo) -> IO[bytes]:
        """Open a new file."""
        name, folder = self._go(member)
        handle = os.open(name, _NEW, member.mode & 0o777, dir_fd=folder)
        _own(handle, member)
        return open(handle, "wb")  # noqa: PTH123 - a descriptor

    def make(self, member: tarfile.TarInfo) -> None:
        """Make a folder or a link."""
        name, folder = self._go(member)
        if member.isdir():
            os.mkdir(name, 0o700, dir_fd=folder)
            self._folders.append(member)
            return
        os.symlink(member.linkname, name, dir_fd=folder)
        if os.geteuid() == 0:
            os.chown(name, member.uid, member.gid, dir_fd=folder, follow_symlinks=False)

    def finish(self) -> None:
        """Give folders their rights, once all is in them: the last one first."""
        for member in reversed(self._folders):
            name, folder = self._go(member)
            handle = os.open(name, FOLDER, dir_fd=folder)
            try:
                _own(handle, member)
                os.fchmod(handle, member.mode & 0o777)
            finally:
                os.close(handle)

    def _go(self, member: tarfile.TarInfo) -> tuple[str, int]:
        """Go to the folder of a member; returns its name there, and that folder."""
        *around, name = parts = member.name.split("/")
        way = self._apart.get(parts[0], self._into)
        way.go(around)
        return name, way.folder


def _own(handle: int, member: tarfile.TarInfo) -> None:
    if os.geteuid() == 0:
        os.fchown(handle, member.uid, member.gid)


def _read(source: Path, secret: Secret, target: _Target | None) -> ArchiveContents:
    found: dict[str, str] = {}
    listed: Mapping[str, Any] | None = None
    names = _Names()
    try:
        with source.open("rb") as file:
            sealed = SealedReader(file, secret)
            with tarfile.open(fileobj=cast("IO[bytes]", sealed), mode="r|gz") as tar:
                for member in tar:
                    names.add(member)
                    data = tar.extractfile(member) if member.isreg() else None
                    if data is not None and member.name == LIST:
                        listed = json.loads(data.read())
                    elif data is not None:
                        found[member.name] = _copy(member, data, target)
                    elif target is not None:
                        target.make(member)
            sealed.read()  # to the piece that says it is the last
    except (tarfile.TarError, EOFError, ValueError, TypeError, zlib.error) as error:
        raise BackupUnusable(f"the backup is damaged ({error}): use another one") from error
    if listed is None:
        raise BackupUnusable("the backup is not whole: use another one")
    contents = ArchiveContents(**listed)
    if wrong := sorted(set(contents.files.items()) ^ set(found.items())):
        raise BackupUnusable(f"the backup is damaged at {wrong[0][0]!r}: use another one")
    return contents


def _copy(member: tarfile.TarInfo, data: IO[bytes], target: _Target | None) -> str:
    """Copy the parts of a file that are stored to their places; returns their checksum."""
    size, parts = _find_parts(member)
    digest = hashlib.sha256()
    with ExitStack() as opened:
        file = None if target is None else opened.enter_context(target.open(member))
        for start, end in parts:
            if file is not None:
                file.seek(start)
            for at in range(start, end, BLOCK_BYTES):
                block = data.read(min(BLOCK_BYTES, end - at))
                digest.update(block)
                if file is not None:
                    file.write(block)
        if file is not None:
            file.truncate(size)
    return digest.hexdigest()


def _find_parts(member: tarfile.TarInfo) -> tuple[int, list[tuple[int, int]]]:
    """Tell how large a file is, and which parts of it are stored; the rest are holes."""
    if (written := member.pax_headers.get(SPARSE)) is None:
        return member.size, [(0, member.size)]
    size, listed = json.loads(written)
    parts = [(int(start), int(end)) for start, end in listed]
    edges = [0, *(edge for part in parts for edge in part), int(size)]
    if edges != sorted(edges) or sum(end - start for start, end in parts) != member.size:
        raise ValueError(f"the holes of {member.name!r}")
    return int(size), parts
