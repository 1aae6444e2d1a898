"""Collects files that agents make for people: checked, stored, and sent once.

An agent may be hostile. No link is followed, only regular files are read, and nothing is stored
that is too large or holds a secret of the bridge. Collected files are staged under the number of
their turn until the end of that turn is committed, so that a crash neither loses them nor sends
them twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import stat
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from app.core.base import Base
from app.core.files import wording
from app.descent import discard
from app.model.posts import MadeFile
from app.model.text import HEAD_BYTES, media_type, safe_name, size_words
from app.model.types import Turn
from app.model.updates import FileUpdate

logger = logging.getLogger(__name__)

FILE_BYTES: Final = 20 * 1024 * 1024
"""Size limit of one file, the same as for attachments."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
"""Opens a folder that may have become a link meanwhile."""
FILES: Final = 10
"""Files per turn: more are better packed into one."""
ALL_BYTES: Final = 50 * 1024 * 1024
"""Total size of the files of one turn."""
LOOKED_AT: Final = 200
"""Names in the folder that are read: an agent may have made a million."""
REFUSALS: Final = 5
"""Refusals that are named one by one."""
TOO_MANY: Final = wording.FILES_TOO_MANY.format(limit=FILES)
TOGETHER: Final = wording.FILES_TOGETHER.format(limit=size_words(ALL_BYTES))
_PART: Final = ".agent-bridge-part"


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


@dataclass(frozen=True, slots=True)
class Given:
    """The files that a turn made."""

    files: tuple[MadeFile, ...] = ()
    refused: str = ""
    """What was refused, and why, worded for people."""


class OutgoingFiles:
    """The files that agents make for people, for all sessions."""

    def __init__(
        self,
        base: Base,
        uploads: Path,
        link: Callable[[str], str],
    ) -> None:
        """Store files in the uploads; `link` tells where the page serves them."""
        self.base = base
        self.uploads = uploads
        self.link = link
        self.told: set[tuple[int, str, int, int]] = set()
        """Known refusals, by session, name, size and time: each is said once."""

    def pick(self, path: str, folders: Sequence[Path]) -> tuple[MadeFile, Path]:
        """Store one file that an agent names; returns it and the folder of the agent that has it.

        Raises:
            NotTaken: it is in none of its folders, or refused.
        """
        try:
            data, folder = _read_inside(PurePosixPath(path), folders)
        except ValueError as error:  # no file has such a name
            raise NotTaken(wording.FILE_ADDRESS) from error
        if self.holds_secret(data):
            raise NotTaken(wording.FILE_HOLDS_SECRET)
        return self.keep(PurePosixPath(path).name, data), folder

    def drop(self, path: str, folder: Path) -> None:
        """Remove a file that was sent from its agent's folder: the end of a turn sends the rest."""
        named = PurePosixPath(path)
        if named.parent not in {PurePosixPath(), PurePosixPath(folder)}:
            return  # the end of a turn sends nothing from folders below
        here = os.open(folder, FOLDER)
        try:
            with suppress(OSError):
                os.unlink(named.name, dir_fd=here)
        finally:
            os.close(here)

    def holds_secret(self, data: bytes) -> bool:
        """Tell whether a file holds a secret of the bridge."""
        contains = self.base.vault.contains
        text = data.decode(errors="replace")
        # Without its zero bytes, UTF-16 text reads like ASCII.
        return contains(text) or ("\0" in text and contains(text.replace("\0", "")))

    def keep(self, name: str, data: bytes) -> MadeFile:
        """Store a file by its content: the same file twice is stored once."""
        name = safe_name(self.base.vault.redact(name))
        folder = self.uploads / hashlib.sha256(data).hexdigest()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (folder / name).is_file():
            _write(folder / name, data)
        os.utime(folder)
        url = f"{folder.name}/{name}"
        kind = media_type(name, data[:HEAD_BYTES])
        return MadeFile(name, kind, url, len(data), self.link(url))

    def of(self, turn: Turn, folder: Path) -> FileHandover:
        """Begin to collect the files of a turn from its agent's folder."""
        return FileHandover(self, turn, folder)


class FileHandover:
    """Collects the files of one turn."""

    def __init__(self, outgoing: OutgoingFiles, turn: Turn, folder: Path) -> None:
        self._of = outgoing
        self._turn = turn
        self._folder = folder
        self._aside = folder.with_name(f"{folder.name}.taken")
        self._mine = self._aside / str(turn.id)
        self._refused: list[str] = []
        self._kept = False
        """Whether everything staged is stored or was refused."""

    @property
    def is_shared(self) -> bool:
        """Whether the files are shown in their own post."""
        adapter = self._of.base.adapters.get(self._turn.surface.adapter)
        return adapter is not None and adapter.shares_files

    async def take(self, update: FileUpdate, workspace: Path) -> None:
        """Stage a file that an agent sent within its answer."""
        try:
            await asyncio.to_thread(self._take_spoken, update, workspace)
        except NotTaken as reason:
            self._refuse(update.name, str(reason))
        except OSError as error:
            self._refuse(update.name, wording.FILE_UNREADABLE.format(cause=error.strerror))

    async def collect(self) -> Given:
        """Collect and store what is ready; until `settle` all of it can be collected again."""
        try:
            earlier = await asyncio.to_thread(self._list_earlier)
            if earlier is None:
                return Given(refused=self._words())
            told = set(filter(self._is_told, earlier))
            files = await asyncio.to_thread(self._collect, told)
        except OSError as error:
            logger.exception("could not store the files of turn %d", self._turn.id)
            why = wording.FILES_NOT_STORED.format(cause=error.strerror)
            return Given(refused=" ".join(filter(None, (self._words(), why))))
        self._kept = True
        return Given(tuple(files), self._words())

    async def settle(self) -> None:
        """Delete the staged copies: the end of the turn names the files now."""
        if self._kept:
            await asyncio.to_thread(discard, self._mine)

    def _take_spoken(self, update: FileUpdate, workspace: Path) -> None:
        data = update.data or self._read_linked(update.address, workspace)
        self._mine.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = {each.name for each in self._mine.iterdir()}
        if len(known) >= FILES:
            raise NotTaken(TOO_MANY)
        _write(self._mine / _find_free_name(safe_name(update.name), known), data)

    def _read_linked(self, address: str, workspace: Path) -> bytes:
        """Read a file that an agent links to, if it is really in the agent's folders."""
        host, path = _parse_address(address)
        if host not in {None, "localhost"} or not path.is_absolute():
            raise NotTaken(wording.FILE_OUTSIDE)
        return _read_inside(path, (workspace, self._folder))[0]

    def _list_earlier(self) -> list[str] | None:
        """List the earlier turns that have staged files; None if there are no files at all."""
        aside = list(self._aside.iterdir()) if self._aside.is_dir() else []
        if not aside and not _holds_anything(self._folder):
            return None
        return sorted(each.name for each in aside if each != self._mine)

    def _collect(self, told: Set[str]) -> list[MadeFile]:
        self._mine.mkdir(mode=0o700, parents=True, exist_ok=True)
        for turn in self._list_earlier() or ():
            self._take_over(self._aside / turn, told=turn in told)
        self._gather()
        files: list[MadeFile] = []
        room = ALL_BYTES
        for path in _whole_files(self._mine):
            try:
                data = self._check(path, room=room, number=len(files))
            except NotTaken as reason:
                self._refuse(path.name, str(reason))
            else:
                room -= len(data)
                files.append(self._of.keep(path.name, data))
        return files

    def _gather(self) -> None:
        """Move files out of the agent's reach; what is refused stays where it is."""
        if not self._folder.is_dir():
            return
        taken = [path.lstat().st_size for path in _whole_files(self._mine)]
        folder = os.open(self._folder, FOLDER)
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in islice(entries, LOOKED_AT))
            for name in names:
                with suppress(FileNotFoundError):  # its agent may still be at work
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if why := unfit(found) or _too_much(taken, found.st_size):
                        self._refuse_once(name, found, why)
                        continue
                    os.replace(name, self._mine / name, src_dir_fd=folder)
                    taken.append(found.st_size)
        finally:
            os.close(folder)

    def _take_over(self, folder: Path, *, told: bool) -> None:
        """Move what a crash left of an earlier turn to this turn, unless people were told of it."""
        for path in () if told else _whole_files(folder):
            known = {each.name for each in self._mine.iterdir()}
            path.replace(self._mine / _find_free_name(path.name, known))
        discard(folder)

    def _is_told(self, turn: str) -> bool:
        post = self._of.base.stores.posts.of_turn(int(turn)) if turn.isdecimal() else None
        return post is None or bool(post.content.files)

    def _check(self, path: Path, *, room: int, number: int) -> bytes:
        if number >= FILES:
            raise NotTaken(TOO_MANY)
        with open_inside(path.parent, PurePosixPath(path.name)) as file:
            data = read(file)
        if len(data) > room:
            raise NotTaken(TOGETHER)
        if self._of.holds_secret(data):
            raise NotTaken(wording.FILE_HOLDS_SECRET)
        return data

    def _refuse_once(self, name: str, found: os.stat_result, why: str) -> None:
        told = (self._turn.session, name, found.st_size, found.st_mtime_ns)
        if told not in self._of.told:
            self._of.told.add(told)
            self._refuse(name, why)

    def _refuse(self, name: str, why: str) -> None:
        shown = safe_name(self._of.base.vault.redact(name))
        self._refused.append(wording.FILE_NOT_SENT.format(name=shown, why=why))

    def _words(self) -> str:
        more = len(self._refused) - REFUSALS
        tail = [wording.FILES_NOT_SENT.format(more=more)] if more > 0 else []
        return " ".join((*self._refused[:REFUSALS], *tail))


def listed(files: tuple[MadeFile, ...]) -> str:
    """Name files in one line."""
    return ", ".join(f"{file.name} ({size_words(file.size)})" for file in files)


def _too_much(taken: Sequence[int], size: int) -> str:
    """Say why one more file is too much; it then comes with the next turn."""
    if len(taken) >= FILES:
        return wording.REST_LATER.format(why=TOO_MANY)
    is_full = sum(taken) + size > ALL_BYTES
    return wording.REST_LATER.format(why=TOGETHER) if is_full else ""


def _read_inside(path: PurePosixPath, folders: Sequence[Path]) -> tuple[bytes, Path]:
    """Read a file and tell which folder has it; a relative path is in the first that does.

    Raises:
        NotTaken: it is nowhere, outside of them, or refused.
    """
    reason = NotTaken(wording.FILE_OUTSIDE)
    for root in folders:
        if path.is_absolute() and not path.is_relative_to(root):
            continue
        try:
            with open_inside(root, path.relative_to(root) if path.is_absolute() else path) as file:
                return read(file), root
        except NotTaken as refused:
            reason = refused
    raise reason


def _parse_address(address: str) -> tuple[str | None, PurePosixPath]:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise NotTaken(wording.FILE_ADDRESS) from error
    path = unquote(parts.path)
    if "\0" in path:
        raise NotTaken(wording.FILE_ADDRESS)
    return parts.hostname, PurePosixPath(path)


def _write(path: Path, data: bytes) -> None:
    """Write a file completely and sync it to disk."""
    part = path.with_name(f".{path.name}{_PART}")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _holds_anything(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    with os.scandir(folder) as entries:
        return next(entries, None) is not None


def _whole_files(folder: Path) -> list[Path]:
    """List the files in a folder, without a partial file that a crash may have left."""
    return sorted(path for path in folder.iterdir() if not path.name.endswith(_PART))


def _find_free_name(name: str, known: set[str]) -> str:
    """Find a name that is not taken yet."""
    stem, dot, ending = name.rpartition(".")
    stem, tail = (stem, f".{ending}") if dot else (name, "")
    names = (f"{stem}-{number}{tail}" for number in count(2))
    return name if name not in known else next(each for each in names if each not in known)
