"""Removes what sessions leave on disk, and finds and overwrites a text in all files that are kept.

Content, names, links and extended attributes are looked at; no link is followed. What is
overwritten keeps its length, so that a file of any format stays as readable as it was. The objects
of git are compressed, so they are only named.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from app.children.tree import Tree, read_attributes
from app.descent import FOLDER, Found, remove, walk
from app.vault import PIECE_BYTES, Known, find_spans, is_in

HOME_BYTES: Final = 256 * 1024 * 1024
"""The largest home that is copied: caches aside, homes hold a few megabytes."""

_SAID: Final = (".files", ".out", ".out.taken")
"""Folders next to a workspace that hold files of messages and for people."""
_SAVED_HOME: Final = ".home"
_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")
"""An id that is part of no other id by chance."""
_EVERYTHING: Final = PurePosixPath()


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """What a search of files came across."""

    held: list[Path] = field(default_factory=list)
    """What holds the text, in its content or its name; a folder after what is in it."""
    repositories: list[Path] = field(default_factory=list)
    """Folders of git whose objects were not looked at."""
    unread: list[Path] = field(default_factory=list)
    """What could not be read."""


class KeptFiles:
    """The files of one machine, and those that all machines share. Every method reads or writes."""

    def __init__(self, own: Path, shared: Path, but: Collection[str]) -> None:
        """Look into two folders; names that begin with one of `but` at their top are left out."""
        self._own = own
        self._shared = shared
        self._but = tuple(but)

    def find(self, known: Known, *, shared: bool = True) -> FoundFiles:
        """List the files and folders that hold what is looked for."""
        found = FoundFiles()
        for root in dict.fromkeys((self._own, self._shared) if shared else (self._own,)):
            self._find(root, known, found)
        found.unread[:] = dict.fromkeys(found.unread)
        return found

    def _find(self, root: Path, known: Known, found: FoundFiles) -> None:
        def enter(each: Found) -> bool:
            if self._is_apart(each):
                return False
            is_objects = each.name == "objects" and _has_head(each.folder)
            if is_objects:
                found.repositories.append((root / each.path).parent)
            return not is_objects

        def unread(path: PurePosixPath) -> None:
            found.unread.append(root / path)

        for each in walk(root, enter=enter, unread=unread, folders_last=True):
            try:
                if not self._is_apart(each) and (known.contains(each.name) or _holds(each, known)):
                    found.held.append(root / each.path)
            except FileNotFoundError:
                continue  # a live agent removes its own files
            except OSError:
                unread(each.path)

    def clean(self, known: Known, held: Collection[Path]) -> list[Path]:
        """Overwrite it in files, and rename or remove what has it in its name.

        Returns what could not be changed.
        """
        left = []
        for each in held:
            root = self._own if each.is_relative_to(self._own) else self._shared
            try:
                _clean(Tree(root), PurePosixPath(each.relative_to(root)), known)
            except FileNotFoundError:
                continue
            except OSError:
                left.append(each)
        return left

    def _is_apart(self, each: Found) -> bool:
        return each.depth == 0 and each.name.startswith(self._but)


def _clean(tree: Tree, path: PurePosixPath, known: Known) -> None:
    entry = tree.entry(path)
    if entry is None:
        return
    if entry.is_link:
        tree.remove(path)
        return
    if entry.is_file:
        with tree.open(path) as content:
            spans = list(find_spans(known, iter(partial(content.read, PIECE_BYTES), b"")))
        if spans:
            tree.overwrite(path, spans)
    if entry.is_file or entry.is_folder:
        tree.strip(path, partial(_is_mark, known))
    if known.contains(path.name):
        name = known.redact(path.name)
        for number in range(1, 1000):
            try:
                tree.rename(path, name if number == 1 else f"{number}-{name}")
            except FileExistsError:
                continue
            return


def _holds(each: Found, known: Known) -> bool:
    status = each.stat()
    if stat.S_ISLNK(status.st_mode):
        return known.contains(os.readlink(each.name, dir_fd=each.folder))
    if stat.S_ISREG(status.st_mode):
        with each.open() as content:
            pieces = iter(partial(content.read, PIECE_BYTES), b"")
            return is_in(known, pieces) or _is_marked(content.fileno(), known)
    if stat.S_ISDIR(status.st_mode):
        folder = os.open(each.name, FOLDER, dir_fd=each.folder)
        try:
            return _is_marked(folder, known)
        finally:
            os.close(folder)
    return False


def _is_marked(file: int, known: Known) -> bool:
    """Tell whether an extended attribute holds it."""
    return any(_is_mark(known, *each) for each in read_attributes(file).items())


def _is_mark(known: Known, name: str, value: bytes) -> bool:
    return known.contains(name) or is_in(known, [value])


def _has_head(folder: int) -> bool:
    try:
        os.stat("HEAD", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


class Traces:
    """The folders of all sessions. Every method reads or writes files."""

    def __init__(
        self,
        workspaces: Path,
        gates: Path,
        homes: Path,
        uploads: Path,
        *,
        saved: Path,
        own: Path,
        base_homes: Path,
        user_of: Callable[[str], int | None],
    ) -> None:
        """Know the folders; `user_of` returns the user that an agent has, if it has its own.

        `own` is what no other machine shares, `saved` what earlier releases saved for others.
        """
        self._own = own
        self._workspaces = workspaces
        self._gates = gates
        self._homes = homes
        self._uploads = uploads
        self._saved = saved
        self._base_homes = base_homes
        self._user_of = user_of

    def measure(self, sessions: Collection[int], *, shared: bool) -> int:
        """Return how many bytes sessions take on disk, with what all machines share or without."""
        roots = [
            root
            for root in (self._workspaces, self._gates, self._homes, self._saved)
            if shared or root.is_relative_to(self._own)
        ]
        return sum(_size(path) for root in roots for path in _of(root, sessions))

    def remove(self, sessions: Collection[int], conversations: Collection[str]) -> None:
        """Remove every folder of sessions whose processes have ended.

        Raises:
            OSError: something cannot be removed.
        """
        self.remove_said(sessions, conversations)
        roots = (self._workspaces, self._gates, self._saved)
        _remove_all(path for root in roots for path in _of(root, sessions))

    def remove_said(self, sessions: Collection[int], conversations: Collection[str]) -> None:
        """Remove the homes of sessions, and the files of their messages; their work stays.

        Raises:
            OSError: something cannot be removed.
        """
        homes = [each for each in _of(self._saved, sessions) if each.name.endswith(_SAVED_HOME)]
        _remove_all([*_of(self._homes, sessions), *homes, *self._said(sessions)])
        known = [each for each in conversations if _CONVERSATION.fullmatch(each)]
        for home in self._base_homes.iterdir() if known and self._base_homes.is_dir() else ():
            tree = Tree(home)
            for file in list(tree.files(_EVERYTHING)):
                if any(each in str(file) for each in known):
                    tree.remove(file)

    def find_uploads(self, sessions: Collection[int]) -> set[str]:
        """Name the uploads that were copied for sessions, by their folder."""
        return {
            each.name
            for folder in self._said(sessions)
            if folder.suffix == ".files"
            for each in walk(folder, enter=lambda _found: False)
        }

    def remove_uploads(self, folders: Collection[str]) -> None:
        """Remove uploads.

        Raises:
            OSError: one cannot be removed.
        """
        for name in folders:
            path = self._uploads / name
            if name and path.parent == self._uploads and path.is_dir():
                remove(path)

    def copy_home(self, agent: str, origin: int, new: int) -> bool:
        """Copy the home of a session for another one; False if there is none to copy.

        Raises:
            OSError: it cannot be copied.
        """
        source, target = (self._homes / f"{number}-{agent}" for number in (origin, new))
        if not source.is_dir() or _size(source) > HOME_BYTES:
            return False
        user = self._user_of(agent)
        target.mkdir(mode=0o700)
        if user is not None:
            os.chown(target, user, user)
        from_home, to_home = Tree(source), Tree(target, user=user)
        for file in from_home.files(_EVERYTHING):
            with suppress(FileNotFoundError):  # a live agent may remove its own files
                to_home.write(file, from_home.read(file), from_home.stat(file))
        return True

    def _said(self, sessions: Collection[int]) -> list[Path]:
        return [path for path in _of(self._workspaces, sessions) if path.name.endswith(_SAID)]


def _of(root: Path, sessions: Collection[int]) -> Iterator[Path]:
    """List the folders of sessions, whose names begin with their numbers."""
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        number, dash, _ = path.name.partition("-")
        if dash and number.isdecimal() and int(number) in sessions:
            yield path


def _remove_all(paths: Iterable[Path]) -> None:
    """Remove folders; one that cannot be removed does not stop the rest."""
    failed: list[OSError] = []
    for path in paths:
        try:
            remove(path)
        except OSError as error:
            failed.append(error)
    if failed:
        raise failed[0]


def _size(path: Path) -> int:
    total = 0
    for found in walk(path):
        with suppress(OSError):
            total += 0 if found.is_folder else found.stat().st_size
    return total
