"""Walks through and removes folders whose content may be hostile: any depth, no link followed.

Folders are opened one below the other, by name and descriptor, so neither the length of a path nor
the depth of Python's stack limits the way down; few of them are open at a time. The way back is the
folder above, if it is still the one that was entered: what is moved meanwhile leads nowhere else.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, NamedTuple, Self

FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened, and nothing else."""
OPEN: Final = 16
"""Folders that one walk has open at most, next to the first: many walks may run at a time."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CLOSED: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened that cannot be read; only Linux knows that."""


@dataclass(slots=True)
class _Step:
    """A folder on the way down."""

    name: str
    folder: int | None
    """Its descriptor, unless it was closed because of those below it."""
    identity: tuple[int, int]


class Descent:
    """A way down from a folder; the last one on it is open."""

    def __init__(self, root: Path | str, *, dir_fd: int | None = None, force: bool = False) -> None:
        """Begin at a folder; `force` gives its owner every right to it first.

        Raises:
            OSError: it cannot be read, or is no folder.
        """
        self.names: list[str] = []
        """The way down, without the first folder."""
        folder = _force(root, dir_fd) if force else os.open(root, FOLDER, dir_fd=dir_fd)
        self._steps = [_Step("", folder, _identify(folder))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for step in self._steps:
            _close(step)

    @property
    def folder(self) -> int:
        """The descriptor of the last folder, until it is left."""
        folder = self._steps[-1].folder
        assert folder is not None
        return folder

    def enter(self, name: str, *, force: bool = False) -> None:
        """Open a folder in the last one; `force` gives its owner every right to it first.

        Raises:
            OSError: it cannot be opened, or is no folder.
        """
        folder = _force(name, self.folder) if force else os.open(name, FOLDER, dir_fd=self.folder)
        self._steps.append(_Step(name, folder, _identify(folder)))
        self.names.append(name)
        if len(self._steps) > OPEN + 1:
            _close(self._steps[-1 - OPEN])

    def leave(self) -> str:
        """Go back to the folder above.

        If that was moved meanwhile, go to the nearest one that was not, and return the name of the
        one in it that was.
        """
        left = self._steps.pop()
        self.names.pop()
        try:
            return "" if self._steps[-1].folder is not None else self._reopen(left)
        finally:
            _close(left)

    def go(self, names: list[str]) -> None:
        """Go to a folder by its way down from the first one.

        Raises:
            OSError: it cannot be opened, or is no folder.
        """
        common = min(len(self.names), len(names))
        while self.names[:common] != names[:common]:
            common -= 1
        while len(self.names) > common:
            self.leave()
        for name in names[len(self.names) :]:
            self.enter(name)

    def _reopen(self, left: _Step) -> str:
        """Open the last folder again: from the one below it, else from the first one."""
        last = self._steps[-1]
        with suppress(OSError):
            last.folder = os.open("..", FOLDER, dir_fd=left.folder)
            if _identify(last.folder) == last.identity:
                return ""
            _close(last)
        known = self._steps[1:]
        del self._steps[1:], self.names[:]
        for step in known:
            try:
                self.enter(step.name)
            except OSError:
                return step.name
            if self._steps[-1].identity != step.identity:
                self.leave()
                return step.name
        return ""


class Found(NamedTuple):
    """A name that a walk came across; what it tells holds until the walk goes on."""

    name: str
    is_folder: bool
    """Whether it was listed as a folder."""
    folder: int
    """The descriptor of the folder that has it."""
    entered: int | None
    """Its own descriptor, if it is a folder that was entered just now."""
    way: list[str]
    depth: int
    """How much of the way leads to the folder that has it."""

    @property
    def path(self) -> PurePosixPath:
        """Where it is, below the first folder."""
        return PurePosixPath(self.place)

    @property
    def place(self) -> str:
        """Where it is, below the first folder; much cheaper than a path if that is deep."""
        return "/".join((*self.way[: self.depth], self.name))

    def stat(self) -> os.stat_result:
        """Return the status of the name itself.

        Raises:
            OSError: it is gone, or its folder may not be searched.
        """
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def open(self) -> BinaryIO:
        """Open it, if it is a plain file.

        Raises:
            OSError: it is none, or cannot be read.
        """
        return open_plain(self.name, self.folder)


def walk(
    root: Path | str,
    *,
    dir_fd: int | None = None,
    enter: Callable[[Found], bool] = lambda _found: True,
    unread: Callable[[PurePosixPath], None] = lambda _path: None,
    folders_last: bool = False,
    force: bool = False,
) -> Iterator[Found]:
    """Yield everything below a folder, by name; a folder before what is in it, or after it.

    `enter` decides about folders; `unread` is told of those that could not be read to their end.
    What is gone meanwhile is left out, also the first folder. `force` gives the owner of folders
    every right to them.
    """
    try:
        descent = Descent(root, dir_fd=dir_fd, force=force)
    except FileNotFoundError:
        return
    except OSError:
        unread(PurePosixPath())
        return
    with descent:
        way = descent.names
        waiting = [_list(descent, unread)]
        while waiting[-1] or way:
            if not waiting[-1]:
                name, lost = way[-1], descent.leave()
                del waiting[len(way) + 1 :]
                if lost:
                    unread(PurePosixPath(*way, lost))
                elif folders_last:
                    yield Found(name, True, descent.folder, None, way, len(way))
                continue
            name, is_folder = waiting[-1].popitem()
            found = Found(name, is_folder, descent.folder, None, way, len(way))
            if is_folder and enter(found) and _enter(descent, found, unread, force=force):
                waiting.append(_list(descent, unread))
                if folders_last:
                    continue
                found = found._replace(entered=descent.folder)
            yield found


def remove(path: Path | str, *, dir_fd: int | None = None) -> None:
    """Remove what is at a path, if anything is, with all that is in it.

    Raises:
        OSError: some of it cannot be removed; the rest is.
    """
    try:
        found = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(path, dir_fd=dir_fd)
        return
    first: OSError | None = None
    for each in walk(path, dir_fd=dir_fd, folders_last=True, force=True):
        try:
            (os.rmdir if each.is_folder else os.unlink)(each.name, dir_fd=each.folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            first = first or OSError(error.errno, error.strerror, str(Path(path) / each.path))
    if first is not None:
        raise first
    os.rmdir(path, dir_fd=dir_fd)


def discard(path: Path | str) -> None:
    """Remove what is at a path, as far as that can be done."""
    with suppress(OSError):
        remove(path)


def open_plain(name: str, folder: int) -> BinaryIO:
    """Open a plain file in a folder to read it.

    Raises:
        OSError: it is none, or cannot be read.
    """
    file = os.open(name, _READ, dir_fd=folder)
    content = open(file, "rb")  # noqa: PTH123, SIM115 - a descriptor; its caller closes it
    if not stat.S_ISREG(os.fstat(file).st_mode):
        content.close()
        raise FileNotFoundError(errno.ENOENT, "it is no plain file", name)
    return content


def _identify(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def _close(step: _Step) -> None:
    if step.folder is not None:
        os.close(step.folder)
        step.folder = None


def _enter(
    descent: Descent, found: Found, unread: Callable[[PurePosixPath], None], *, force: bool
) -> bool:
    try:
        descent.enter(found.name, force=force)
    except FileNotFoundError:
        return False
    except OSError:
        unread(found.path)
        return False
    return True


def _list(descent: Descent, unread: Callable[[PurePosixPath], None]) -> dict[str, bool]:
    """List the last folder, the first name last; tells of each name whether it is a folder."""
    names: dict[str, bool] = {}
    try:
        with os.scandir(descent.folder) as found:
            for each in found:
                # While names are exchanged, one may be listed twice.
                names[each.name] = each.is_dir(follow_symlinks=False)
    except FileNotFoundError:
        return {}
    except OSError:
        unread(PurePosixPath(*descent.names))
    return dict(sorted(names.items(), reverse=True))


def _force(path: Path | str, dir_fd: int | None) -> int:
    """Open a folder as one whose owner may read, change and search it."""
    try:
        folder = os.open(path, FOLDER, dir_fd=dir_fd)
    except PermissionError:
        closed = os.open(path, _CLOSED, dir_fd=dir_fd)
        try:
            # A descriptor like this one can be neither read nor changed: its name in /proc can.
            Path(f"/proc/self/fd/{closed}").chmod(stat.S_IRWXU)
            folder = os.open(".", FOLDER, dir_fd=closed)
        finally:
            os.close(closed)
    if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        with suppress(PermissionError):  # another user's: its owner's rights are not ours to give
            os.fchmod(folder, stat.S_IRWXU)
    return folder
