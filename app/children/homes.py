"""Creates each session's home from its agent's base home, and assigns agents their user ids.

A session's home belongs to an agent that may be hostile: its settings are never copied back, and a
login only if nothing but the fields of a refresh changed.

A user id is never reused for another agent: the files of a removed agent stay its own.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

from pydantic import ConfigDict

from app.children.file_lock import FileLock
from app.children.tree import Tree
from app.descent import walk

logger = logging.getLogger(__name__)

_LOGIN_BYTES: Final = 256 * 1024
"""Many times the largest login file seen."""
_HEAD_BYTES: Final = 16 * 1024
"""A history file names its conversation in its first lines."""
_CONVERSATION: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")
"""An id that is part of no other id by chance."""
_SHORT_ID: Final = 8
"""Characters of the id in a history file's name, for agents that shorten it."""
_TOOLS: Final = (".gitconfig", ".config/git", ".npmrc")
"""Tool settings that an operator may have put into a base home; agents may change them."""
_FILE: Final = "agent-users.json"
_IDS: Final = range(60578, 61184)
"""Not assigned by Debian, Fedora or systemd (systemd.io/UIDS-GIDS); containers map them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFiles:
    """One agent program's files, as paths in its home; a folder ends with a slash."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    login: tuple[str, ...] = ()
    """Logins, as JSON: copied in, and copied back when they were refreshed."""
    refreshed: tuple[str, ...] = ()
    """The fields of a login that a refresh changes."""
    settings: tuple[str, ...] = ()
    """What decides whether it asks and what it runs unasked: copied in, read-only where that can be
    enforced."""
    rewritten: tuple[str, ...] = ()
    """Settings that it writes while it works: copied in, writable."""
    caches: tuple[str, ...] = ()
    """Large files that it recreates when missing: removed when a process ends."""
    history: tuple[str, ...] = ()
    """Where it keeps conversations, in files whose path carries the id of each."""


@dataclass(frozen=True, slots=True)
class Home:
    """One home as a process gets it."""

    path: Path
    readonly: tuple[Path, ...] = ()
    """What in it the process must not change."""


class SessionHomes:
    """The homes of one agent's sessions. Every method reads or writes files."""

    def __init__(
        self, base: Path, root: Path, files: HomeFiles | None, *, user: int | None = None
    ) -> None:
        """Create homes below `root` from `base`; without `files`, copy all that is newer there.

        `user` owns what is created, if the bridge runs as root.
        """
        self._base = Tree(base)
        self._base_folder = base
        self._root = root
        self._files = files
        self._user = user
        self._live: set[str] = set()
        self._lock = FileLock(root / f".{base.name}.lock")

    def ensure(self, name: str) -> Home:
        """Return a session's home as it is; create an empty one if there is none.

        Raises:
            OSError: it cannot be made.
        """
        path = self._root / name
        if not path.is_dir():
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._user is not None:
                os.chown(path, self._user, self._user)
        settings = () if self._files is None else self._files.settings
        return Home(path, tuple(path / each for each in settings))

    def open(self, name: str, conversation: str | None = None) -> Home:
        """Prepare a session's home for a start: logins and settings are the base home's.

        Logins that other sessions have refreshed meanwhile are included. The history of a
        conversation that began in the base home is copied in.

        Raises:
            OSError: it cannot be made.
        """
        with self._lock:
            home = self.ensure(name)
            for each in sorted({*self._live, name}):
                self._take_back(each)
            self._live.add(name)
            self._fill(Tree(home.path, user=self._user), conversation)
        return home

    def close(self, name: str) -> None:
        """Copy back the refreshed logins of a session whose process ended; drop its caches."""
        with self._lock:
            self._take_back(name)
            self._live.discard(name)
        for cache in () if self._files is None else self._files.caches:
            with suppress(OSError):
                Tree(self._root / name).remove(PurePosixPath(cache))

    def _fill(self, home: Tree, conversation: str | None) -> None:
        files = self._files
        for path in map(PurePosixPath, ("",) if files is None else _TOOLS):
            self._copy(home, path, only_newer=True)
        if files is None:
            return
        provided = [
            PurePosixPath(each) for each in (*files.login, *files.settings, *files.rewritten)
        ]
        for path in provided:
            home.remove(path)
        for path in provided:
            self._copy(home, path)
        for each in files.settings:
            _hold_place(home, each)
        for path in self._history(files, conversation):
            if home.stat(path) is None:
                self._copy(home, path)

    def _copy(self, home: Tree, path: PurePosixPath, *, only_newer: bool = False) -> None:
        """Copy a file, or all files of a folder, from the base home."""
        for file in self._base.files(path):
            ours, theirs = self._base.stat(file), home.stat(file) if only_newer else None
            if ours is None or (theirs is not None and theirs.st_mtime_ns >= ours.st_mtime_ns):
                continue
            # Keep its age: it shows later whether a session has written it.
            home.write(file, self._base.read(file), ours)

    def _history(self, files: HomeFiles, conversation: str | None) -> Iterator[PurePosixPath]:
        """Find the files of one conversation in the base home."""
        if conversation is None or not _CONVERSATION.fullmatch(conversation):
            return
        for top in map(PurePosixPath, files.history):
            for file in self._base.files(top):
                if file == top or conversation in str(file.relative_to(top)):
                    yield file
                elif conversation[:_SHORT_ID] in file.name:
                    head = self._base.read(file, _HEAD_BYTES)
                    if f'"{conversation}"'.encode() in head:
                        yield file

    def _take_back(self, name: str) -> None:
        for each in () if self._files is None else self._files.login:
            try:
                content = self._read_refreshed(name, PurePosixPath(each))
                if content is not None:
                    _replace(self._base_folder / each, content, self._user)
                    logger.info("copied a refreshed login from home %s", name)
            except (OSError, ValueError, RecursionError) as error:
                logger.warning("did not copy %s from home %s: %s", each, name, error)

    def _read_refreshed(self, name: str, path: PurePosixPath) -> bytes | None:
        """Read a login that a session has refreshed since the base home's was written."""
        assert self._files is not None
        session = Tree(self._root / name)
        ours, theirs = self._base.stat(path), session.stat(path)
        if ours is None or theirs is None or theirs.st_mtime_ns <= ours.st_mtime_ns:
            return None
        before, after = self._base.read(path), session.read(path, _LOGIN_BYTES)
        if before == after:
            return None
        if not _is_refresh(json.loads(before), json.loads(after), self._files.refreshed):
            raise ValueError("it changed by more than a refresh")
        return after


def _is_refresh(old: Any, new: Any, fields: tuple[str, ...]) -> bool:
    """Tell whether two logins differ only in these fields, at any depth."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return bool(old == new)
    names = {*old, *new} - set(fields)
    return all(
        name in old and name in new and _is_refresh(old[name], new[name], fields) for name in names
    )


def _hold_place(home: Tree, path: str) -> None:
    """Create an empty placeholder for missing settings: the agent could create them otherwise."""
    place = PurePosixPath(path)
    if path.endswith("/"):
        home.make_folder(place)
    elif home.stat(place) is None:
        home.write(place, b"{}\n" if ".json" in place.name else b"")


def _replace(file: Path, content: bytes, user: int | None) -> None:
    """Replace a file atomically, readable only by its owner."""
    descriptor, new = tempfile.mkstemp(dir=file.parent, prefix=".log-in-")
    try:
        with open(descriptor, "wb") as target:  # noqa: PTH123 - a descriptor
            target.write(content)
            if user is not None:
                os.fchown(descriptor, user, user)
        os.replace(new, file)  # noqa: PTH105 - one call for both strings
    except BaseException:
        os.unlink(new)  # noqa: PTH108
        raise


def allocate_users(shared_dir: Path, agents: Iterable[str]) -> dict[str, int]:
    """Return the user id of each agent, the same as last time; new ones are stored.

    Raises:
        OSError: the list cannot be read or written.
    """
    file = shared_dir / _FILE
    with FileLock(file.with_suffix(".lock")):
        return _allocate(file, agents)


def _allocate(file: Path, agents: Iterable[str]) -> dict[str, int]:
    known = json.loads(file.read_text()) if file.exists() else {}
    free = iter(sorted(set(_IDS) - set(known.values())))
    users = known | {agent: next(free) for agent in agents if agent not in known}
    if users != known:
        new = file.with_suffix(".new")
        new.write_text(json.dumps(users, indent=2))
        new.replace(file)
    return users


def give(path: Path, user: int | None, *, always: bool = False) -> None:
    """Make a user the owner of a path and all in it, without following links.

    Does nothing if the user owns the path itself already, unless `always`.
    """
    if user is None or (not always and os.lstat(path).st_uid == user):
        return
    for found in walk(path):
        with suppress(FileNotFoundError):
            os.chown(found.name, user, user, dir_fd=found.folder, follow_symlinks=False)
    # Last: if this is interrupted, the next call starts over.
    os.chown(path, user, user, follow_symlinks=False)
