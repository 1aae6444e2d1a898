"""Reads and writes files below one folder whose content may be hostile: follows no link."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from app.descent import FOLDER, open_plain, remove, walk

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHANGE: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One name in a folder, with the status of the name itself."""

    name: str
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file."""
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.status.st_mode)


def read_attributes(file: int) -> dict[str, bytes]:
    """Read the extended attributes that the owner of an open file or folder may set.

    Raises:
        OSError: one cannot be read.
    """
    if sys.platform != "linux":
        return {}
    try:
        names = os.listxattr(file)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise
    return {name: os.getxattr(file, name) for name in names if name.startswith("user.")}


class Tree:
    """The files below a folder, by paths relative to it."""

    def __init__(self, root: Path, *, user: int | None = None) -> None:
        """Use an existing folder; `user` owns what is created, if the bridge runs as root."""
        self._root = root
        self._user = user

    def stat(self, path: PurePosixPath) -> os.stat_result | None:
        """Return the status of a path itself; None if nothing is there."""
        try:
            with self._folder(path.parent) as folder:
                return os.stat(path.name or ".", dir_fd=folder, follow_symlinks=False)
        except OSError:
            return None

    def entry(self, path: PurePosixPath) -> FolderEntry | None:
        """Return what is at a path itself; None if nothing is there."""
        found = self.stat(path)
        return None if found is None else FolderEntry(path.name, found)

    def files(
        self,
        path: PurePosixPath,
        unread: Callable[[PurePosixPath], None] = lambda _path: None,
    ) -> Iterator[PurePosixPath]:
        """List the plain files at a path: itself, or all below it.

        `unread` is told of folders that could not be read.
        """
        entry = self.entry(path)
        if entry is not None and entry.is_file:
            yield path
        if entry is None or not entry.is_folder:
            return
        with self._folder(path) as folder:
            for found in walk(".", dir_fd=folder, unread=lambda each: unread(path / each)):
                with suppress(OSError):  # it is gone, or its folder may not be searched
                    if not found.is_folder and stat.S_ISREG(found.stat().st_mode):
                        yield path / found.path

    def entries(self, path: PurePosixPath, limit: int) -> list[FolderEntry]:
        """List what is in a folder, at most this many, unsorted.

        Raises:
            OSError: it is not a folder.
        """
        with self._folder(path) as folder, os.scandir(folder) as found:
            return [
                FolderEntry(each.name, each.stat(follow_symlinks=False))
                for each in itertools.islice(found, limit)
            ]

    def read(self, path: PurePosixPath, limit: int = -1) -> bytes:
        """Read a plain file, at most this many bytes.

        Raises:
            OSError: there is none.
        """
        with self.open(path) as content:
            return content.read(limit)

    def open(self, path: PurePosixPath) -> BinaryIO:
        """Open a plain file to read it.

        Raises:
            OSError: there is none.
        """
        with self._folder(path.parent) as folder:
            return open_plain(path.name, folder)

    def write(
        self, path: PurePosixPath, content: bytes, like: os.stat_result | None = None
    ) -> None:
        """Write a new file, replacing what is there; `like` gives its mode and age.

        Raises:
            OSError: it cannot be written.
        """
        self.remove(path)
        mode = 0o600 if like is None else 0o600 | (stat.S_IMODE(like.st_mode) & 0o100)
        with self._folder(path.parent, make=True) as folder:
            file = os.open(path.name, _NEW, mode, dir_fd=folder)
        with open(file, "wb", buffering=0) as target:  # noqa: PTH123 - a descriptor
            target.write(content)
            if self._user is not None:
                os.fchown(file, self._user, self._user)
            if like is not None:
                os.utime(file, ns=(like.st_atime_ns, like.st_mtime_ns))

    def link(self, path: PurePosixPath) -> str:
        """Return where a symbolic link points to.

        Raises:
            OSError: there is none.
        """
        with self._folder(path.parent) as folder:
            return os.readlink(path.name, dir_fd=folder)

    def replace(self, path: PurePosixPath, content: bytes) -> None:
        """Write a file at once: readers and crashes see the old content or the new.

        Raises:
            OSError: it cannot be written, or its folder was exchanged meanwhile.
        """
        fresh = f".{path.name}.new"
        with self._folder(path.parent, make=True) as folder:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)
            file = os.open(fresh, _NEW, 0o600, dir_fd=folder)
            with open(file, "wb") as target:  # noqa: PTH123 - a descriptor
                target.write(content)
                target.flush()
                os.fsync(file)
                written = os.fstat(file)
            os.replace(fresh, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        found = self.stat(path)
        if found is None or not os.path.samestat(found, written):
            raise OSError(errno.ESTALE, "its folder was exchanged meanwhile")

    def overwrite(self, path: PurePosixPath, spans: Iterable[tuple[int, int]]) -> None:
        """Write stars over parts of a plain file, where they are; nothing else in it changes.

        Raises:
            OSError: it cannot be written.
        """
        with self.open(path) as content, self._folder(path.parent) as folder:
            before = os.fstat(content.fileno())
            os.fchmod(content.fileno(), before.st_mode | stat.S_IWUSR)
            file = os.open(path.name, _CHANGE, dir_fd=folder)
            try:
                if os.path.samestat(os.fstat(file), before):
                    for start, end in spans:
                        os.pwrite(file, b"*" * (end - start), start)
                    os.fsync(file)
            finally:
                os.close(file)
                os.fchmod(content.fileno(), stat.S_IMODE(before.st_mode))

    def strip(self, path: PurePosixPath, holds: Callable[[str, bytes], bool]) -> None:
        """Remove the extended attributes of a file or a folder that hold something.

        Raises:
            OSError: one cannot be removed.
        """
        with self._folder(path.parent) as folder:
            file = os.open(path.name, _READ, dir_fd=folder)
        try:
            before = stat.S_IMODE(os.fstat(file).st_mode)
            for name, value in read_attributes(file).items():
                if holds(name, value):
                    os.fchmod(file, before | stat.S_IWUSR)
                    os.removexattr(file, name)
                    os.fchmod(file, before)
        finally:
            os.close(file)

    def rename(self, path: PurePosixPath, name: str) -> None:
        """Give what is at a path another name in its folder, unless that is taken.

        Raises:
            OSError: it cannot be renamed.
        """
        with self._folder(path.parent) as folder:
            if self.stat(path.parent / name) is not None:
                raise FileExistsError(str(path.parent / name))
            os.rename(path.name, name, src_dir_fd=folder, dst_dir_fd=folder)

    def make_folder(self, path: PurePosixPath) -> None:
        """Create a folder and its parents."""
        with self._folder(path, make=True):
            pass

    def remove(self, path: PurePosixPath) -> None:
        """Remove what is at a path.

        Raises:
            OSError: it cannot be removed.
        """
        with suppress(FileNotFoundError, NotADirectoryError), self._folder(path.parent) as folder:
            remove(path.name, dir_fd=folder)

    @contextmanager
    def _folder(self, path: PurePosixPath, *, make: bool = False) -> Iterator[int]:
        """Open a folder step by step; with `make`, replace what is not a folder by one."""
        if path.is_absolute() or ".." in path.parts:
            raise FileNotFoundError(str(path))
        here = os.open(self._root, FOLDER)
        try:
            for name in path.parts:
                if make:
                    self._ensure(here, name)
                above, here = here, os.open(name, FOLDER, dir_fd=here)
                os.close(above)
            yield here
        finally:
            os.close(here)

    def _ensure(self, folder: int, name: str) -> None:
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return
            os.unlink(name, dir_fd=folder)
        os.mkdir(name, 0o700, dir_fd=folder)
        if self._user is not None:
            os.chown(name, self._user, self._user, dir_fd=folder, follow_symlinks=False)
