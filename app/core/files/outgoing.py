"""Takes what agents make for people out of their hands: checked, kept, and sent once.

An agent may be hostile. Nothing is followed that only points at a file, nothing is read that is no
plain file, and nothing is kept that is too much or holds a secret of the bridge. What was taken
lies aside under the number of its turn until the end of that turn is committed, so that a crash
neither loses it nor sends it twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from app.core.adapters import Adapter, FileSharer
from app.core.files.hostile import FOLDER, NotTaken, opened_inside, read, unfit
from app.core.files.names import HEAD_BYTES, media_type, safe_name, size_words
from app.core.ports import Workspaces
from app.core.posts import MadeFile
from app.core.stores.sessions import PostStore
from app.core.types import Session, Turn
from app.core.updates import FileUpdate
from app.vault import Vault

logger = logging.getLogger(__name__)

FILES: Final = 10
"""Files of one turn: more are better packed into one."""
ALL_BYTES: Final = 50 * 1024 * 1024
"""What the files of one turn may hold together."""
LOOKED_AT: Final = 200
"""Names in the folder that are looked at: an agent may have made a million."""
REFUSALS: Final = 5
"""Refusals that are said one by one."""

TOO_MANY: Final = f"only {FILES} files of one turn are sent"
TOGETHER: Final = f"the files of one turn may hold {size_words(ALL_BYTES)} together"

_PART: Final = ".agent-bridge-part"


@dataclass(frozen=True, slots=True)
class Given:
    """What came of a turn beside its words."""

    files: tuple[MadeFile, ...] = ()
    refused: str = ""
    """What was not taken, and why, in words for people."""


class Outgoing:
    """What agents make for people, of all sessions."""

    def __init__(
        self,
        workspaces: Workspaces,
        uploads: Path,
        posts: PostStore,
        adapters: Mapping[str, Adapter],
        vault: Vault,
        link: Callable[[str], str],
    ) -> None:
        """Keep files in the uploads; `link` tells where the page gives out what is kept there."""
        self.workspaces = workspaces
        self.uploads = uploads
        self.posts = posts
        self.adapters = adapters
        self.vault = vault
        self.link = link
        self.told: set[tuple[int, str, int, int]] = set()
        """What was refused already, by session, name, size and time: it is said once."""

    def of(self, session: Session, turn: Turn) -> Handover:
        """Begin to take what a turn makes."""
        return Handover(self, session, turn)


class Handover:
    """What one turn hands over."""

    def __init__(self, outgoing: Outgoing, session: Session, turn: Turn) -> None:
        self._of = outgoing
        self._session = session
        self._turn = turn
        folder = outgoing.workspaces.outgoing(session)
        self._folder = folder
        self._aside = folder.with_name(f"{folder.name}.taken")
        self._mine = self._aside / str(turn.id)
        self._refused: list[str] = []
        self._kept = False
        """Whether all that lies aside is kept, or was refused."""

    @property
    def is_shared(self) -> bool:
        """Whether the files are shown in a post of their own."""
        adapter = self._of.adapters.get(self._turn.surface.adapter)
        return isinstance(adapter, FileSharer)

    async def take(self, update: FileUpdate, workspace: Path) -> None:
        """Lay aside what an agent handed over in the midst of its words."""
        try:
            await asyncio.to_thread(self._take_spoken, update, workspace)
        except NotTaken as reason:
            self._refuse(update.name, str(reason))
        except OSError as error:
            self._refuse(update.name, f"it cannot be read ({error.strerror})")

    async def collect(self) -> Given:
        """Take what lies ready and keep it; until `settle` all of it can be taken again."""
        try:
            earlier = await asyncio.to_thread(self._earlier)
            if earlier is None:
                return Given(refused=self._words())
            told = set(filter(self._is_told, earlier))
            files = await asyncio.to_thread(self._collect, told)
        except OSError as error:
            logger.exception("files of turn %d", self._turn.id)
            why = (
                f"Files could not be kept ({error.strerror}); it is tried again with the next turn."
            )
            return Given(refused=" ".join(filter(None, (self._words(), why))))
        self._kept = True
        return Given(tuple(files), self._words())

    async def settle(self) -> None:
        """Let go of what was taken: the end of the turn names it."""
        if self._kept:
            await asyncio.to_thread(shutil.rmtree, self._mine, ignore_errors=True)

    def _take_spoken(self, update: FileUpdate, workspace: Path) -> None:
        data = update.data or self._linked(update.address, workspace)
        self._mine.mkdir(mode=0o700, parents=True, exist_ok=True)
        known = {each.name for each in self._mine.iterdir()}
        if len(known) >= FILES:
            raise NotTaken(TOO_MANY)
        _write(self._mine / _free(safe_name(update.name), known), data)

    def _linked(self, address: str, workspace: Path) -> bytes:
        """Read a file that an agent points at, if it is its own and really lies there."""
        host, path = _place_of(address)
        for root in (workspace, self._folder):
            if host in {None, "localhost"} and path.is_relative_to(root):
                with opened_inside(root, path.relative_to(root)) as file:
                    return read(file)
        raise NotTaken("it is not in the agent's folder")

    def _earlier(self) -> list[str] | None:
        """List the earlier turns of which something lies aside; None if nothing lies anywhere."""
        aside = list(self._aside.iterdir()) if self._aside.is_dir() else []
        if not aside and not _holds_anything(self._folder):
            return None
        return sorted(each.name for each in aside if each != self._mine)

    def _collect(self, told: Set[str]) -> list[MadeFile]:
        self._mine.mkdir(mode=0o700, parents=True, exist_ok=True)
        for turn in self._earlier() or ():
            self._take_over(self._aside / turn, told=turn in told)
        self._gather()
        files: list[MadeFile] = []
        room = ALL_BYTES
        for path in _whole_files(self._mine):
            try:
                data = self._checked(path, room=room, number=len(files))
            except NotTaken as reason:
                self._refuse(path.name, str(reason))
            else:
                room -= len(data)
                files.append(self._keep(path.name, data))
        return files

    def _gather(self) -> None:
        """Move what an agent laid ready out of its reach; what is refused stays where it is."""
        if not self._folder.is_dir():
            return
        taken = [path.lstat().st_size for path in _whole_files(self._mine)]
        folder = os.open(self._folder, FOLDER)
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in islice(entries, LOOKED_AT))
            for name in names:
                with suppress(FileNotFoundError):  # its agent may be at work still
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if why := unfit(found) or _too_much(taken, found.st_size):
                        self._refuse_once(name, found, why)
                        continue
                    os.replace(name, self._mine / name, src_dir_fd=folder)
                    taken.append(found.st_size)
        finally:
            os.close(folder)

    def _take_over(self, folder: Path, *, told: bool) -> None:
        """Make what a crash left of an earlier turn this turn's, unless people were told of it."""
        for path in () if told else _whole_files(folder):
            known = {each.name for each in self._mine.iterdir()}
            path.replace(self._mine / _free(path.name, known))
        shutil.rmtree(folder, ignore_errors=True)

    def _is_told(self, turn: str) -> bool:
        post = self._of.posts.of_turn(int(turn)) if turn.isdecimal() else None
        return post is None or bool(post.content.files)

    def _checked(self, path: Path, *, room: int, number: int) -> bytes:
        if number >= FILES:
            raise NotTaken(TOO_MANY)
        with opened_inside(path.parent, PurePosixPath(path.name)) as file:
            data = read(file)
        if len(data) > room:
            raise NotTaken(TOGETHER)
        if self._holds_secret(data):
            raise NotTaken("it holds a secret that the bridge knows")
        return data

    def _holds_secret(self, data: bytes) -> bool:
        contains = self._of.vault.contains
        text = data.decode(errors="replace")
        # Without its zeros a text of two bytes a letter reads like one of one.
        return contains(text) or ("\0" in text and contains(text.replace("\0", "")))

    def _keep(self, name: str, data: bytes) -> MadeFile:
        """Keep a file by what is in it: twice the same is once."""
        name = safe_name(self._of.vault.redact(name))
        folder = self._of.uploads / hashlib.sha256(data).hexdigest()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (folder / name).is_file():
            _write(folder / name, data)
        os.utime(folder)
        url = f"{folder.name}/{name}"
        kind = media_type(name, data[:HEAD_BYTES])
        return MadeFile(name, kind, url, len(data), self._of.link(url))

    def _refuse_once(self, name: str, found: os.stat_result, why: str) -> None:
        told = (self._session.id, name, found.st_size, found.st_mtime_ns)
        if told not in self._of.told:
            self._of.told.add(told)
            self._refuse(name, why)

    def _refuse(self, name: str, why: str) -> None:
        shown = safe_name(self._of.vault.redact(name))
        self._refused.append(f"`{shown}` was not sent: {why}.")

    def _words(self) -> str:
        more = len(self._refused) - REFUSALS
        tail = [f"{more} more files were not sent."] if more > 0 else []
        return " ".join((*self._refused[:REFUSALS], *tail))


def listed(files: tuple[MadeFile, ...]) -> str:
    """Name files in one line."""
    return ", ".join(f"{file.name} ({size_words(file.size)})" for file in files)


def _too_much(taken: Sequence[int], size: int) -> str:
    """Say why one more file is too much; it comes with the next turn then."""
    if len(taken) >= FILES:
        return f"{TOO_MANY}, the rest with the next"
    return f"{TOGETHER}, the rest comes with the next" if sum(taken) + size > ALL_BYTES else ""


def _place_of(address: str) -> tuple[str | None, PurePosixPath]:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise NotTaken("its address makes no sense") from error
    path = unquote(parts.path)
    if "\0" in path:
        raise NotTaken("its address makes no sense")
    return parts.hostname, PurePosixPath(path)


def _write(path: Path, data: bytes) -> None:
    """Write a file as a whole, and not only in memory."""
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
    """List what lies in a folder, without the half of a file that a crash may have left."""
    return sorted(path for path in folder.iterdir() if not path.name.endswith(_PART))


def _free(name: str, known: set[str]) -> str:
    """Find a name that is not taken yet."""
    stem, dot, ending = name.rpartition(".")
    stem, tail = (stem, f".{ending}") if dot else (name, "")
    names = (f"{stem}-{number}{tail}" for number in count(2))
    return name if name not in known else next(each for each in names if each not in known)
