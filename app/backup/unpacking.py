"""Checks archives byte by byte, and unpacks them: new files only, and nothing outside a folder."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

from app.backup.archive import LIST, Contents
from app.backup.stream import SealedReader, Secret
from app.errors import BackupUnusable

BLOCK_BYTES: Final = 1024 * 1024
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check(source: Path, secret: Secret) -> Contents:
    """Check every byte of an archive.

    Raises:
        BackupUnusable: it is damaged, incomplete, or sealed in another way.
    """
    return _read(source, secret, _Nowhere())


def unpack(source: Path, secret: Secret, into: Path) -> Contents:
    """Check every byte of an archive, and unpack it into an empty folder.

    Raises:
        BackupUnusable: it is damaged, incomplete, or sealed in another way.
        OSError: it cannot be unpacked.
    """
    target = _Folder(into)
    contents = _read(source, secret, target)
    target.close()
    return contents


class _Nowhere:
    """Keeps nothing of what is read."""

    def open(self, member: tarfile.TarInfo) -> IO[bytes]:
        del member
        return Path(os.devnull).open("wb")

    def make(self, member: tarfile.TarInfo) -> None:
        """Make a folder or a link."""


class _Folder(_Nowhere):
    """Makes files below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: dict[Path, tarfile.TarInfo] = {}

    def open(self, member: tarfile.TarInfo) -> IO[bytes]:
        """Open a new file."""
        handle = os.open(self._path(member), _NEW, member.mode & 0o777)
        self._own(handle, member)
        return open(handle, "wb")  # noqa: PTH123 - a descriptor

    def make(self, member: tarfile.TarInfo) -> None:
        """Make a folder or a link."""
        path = self._path(member)
        if member.issym():
            path.symlink_to(member.linkname)
            if os.geteuid() == 0:
                os.lchown(path, member.uid, member.gid)
        elif member.isdir():
            path.mkdir(mode=0o700, exist_ok=True)
            self._folders[path] = member

    def close(self) -> None:
        """Give folders their rights, once all is in them."""
        for path, member in reversed(self._folders.items()):
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                self._own(handle, member)
                os.fchmod(handle, member.mode & 0o777)
            finally:
                os.close(handle)

    def _own(self, handle: int, member: tarfile.TarInfo) -> None:
        if os.geteuid() == 0:
            os.fchown(handle, member.uid, member.gid)

    def _path(self, member: tarfile.TarInfo) -> Path:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            raise BackupUnusable(f"it holds the name {member.name!r}")
        parent = self._root / name.parent
        # The packer named every folder before what is in it: a link never comes in between.
        if parent != self._root and parent not in self._folders:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._root / name


def _read(source: Path, secret: Secret, target: _Nowhere) -> Contents:
    found: dict[str, str] = {}
    listed: Mapping[str, Any] | None = None
    try:
        with source.open("rb") as file:
            sealed = SealedReader(file, secret)
            with tarfile.open(fileobj=cast("IO[bytes]", sealed), mode="r|gz") as tar:
                for member in tar:
                    data = tar.extractfile(member) if member.isreg() else None
                    if data is None:
                        target.make(member)
                    elif member.name == LIST:
                        listed = json.loads(data.read())
                    else:
                        found[member.name] = _copy(data, target.open(member))
            sealed.read()  # to the piece that says it is the last
    except (tarfile.TarError, EOFError, ValueError, zlib.error) as error:
        raise BackupUnusable(f"the backup is damaged ({error}): use another one") from error
    if listed is None:
        raise BackupUnusable("the backup is not whole: use another one")
    contents = Contents(**listed)
    if wrong := sorted(set(contents.files.items()) ^ set(found.items())):
        raise BackupUnusable(f"the backup is damaged at {wrong[0][0]!r}: use another one")
    return contents


def _copy(data: IO[bytes], target: IO[bytes]) -> str:
    digest = hashlib.sha256()
    with target:
        while block := data.read(BLOCK_BYTES):
            digest.update(block)
            target.write(block)
    return digest.hexdigest()
