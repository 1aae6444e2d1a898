"""Removes what sessions leave on disk, and copies an agent's home for a fork; follows no link."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from app.children.tree import Tree
from app.descent import remove, walk

HOME_BYTES: Final = 256 * 1024 * 1024
"""The largest home that is copied: caches aside, homes hold a few megabytes."""

_SAID: Final = (".files", ".out", ".out.taken")
"""Folders next to a workspace that hold files of messages and for people."""
_SAVED_HOME: Final = ".home"
_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")
"""An id that is part of no other id by chance."""
_EVERYTHING: Final = PurePosixPath()


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
