"""Keeps the files of agents: who each one is, what it remembers, and what all of them are told.

Only the names listed here exist, and no link is ever followed. What is written is whole or not at
all, without secrets, and the text before is kept, so that a change can be undone.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Final

from app.agents.identity import read_identity
from app.children.file_lock import FileLock
from app.children.tree import Tree
from app.errors import Conflict, FileRefused, NotFound
from app.vault import Vault

IDENTITY: Final = "IDENTITY.md"
SOUL: Final = "SOUL.md"
MEMORY: Final = "MEMORY.md"
AGENTS: Final = "AGENTS.md"
TOOLS: Final = "TOOLS.md"
USER: Final = "USER.md"
OWN: Final = (IDENTITY, SOUL, AGENTS, TOOLS, MEMORY)
"""Files of one agent, in addition to a log for each day."""
SHARED: Final = (AGENTS, TOOLS, USER)
"""Files for all agents; an agent's own file of the same name replaces one."""
FILE_BYTES: Final = 32 * 1024
"""The longest of these files: an agent reads all of them when a session begins."""
LOG_BYTES: Final = 256 * 1024
"""The longest log of one day: it is searched, never sent as a whole."""
VERSIONS_KEPT: Final = 10
"""How many earlier texts of a file are kept."""

_LOGS: Final = "memory"
_LOG: Final = re.compile(rf"{_LOGS}/(\d{{4}}-\d\d-\d\d)\.md", re.ASCII)
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
_VERSIONS: Final = ".versions"
_GONE: Final = "-gone"
_MOST_LOGS: Final = 10_000
"""Some thirty years of days; no list of a folder is longer."""
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class AgentFile:
    """One file as it is on the disk."""

    path: str
    size: int
    changed_at: float
    text: str = ""
    problem: str = ""
    """What is wrong with a file that was changed by hand, and what to do."""

    @property
    def digest(self) -> str:
        """A short value that changes with the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier state of a file."""

    number: int
    size: int
    written_at: float
    gone: bool
    """Whether there was no such file."""


class AgentFiles:
    """The files below `agents/` in SHARED_DIR; an agent of None means those for all agents.

    Every call works on the disk: call it in a thread.
    """

    def __init__(self, shared_dir: Path, vault: Vault) -> None:
        self._root = shared_dir / "agents"
        self._tree = Tree(self._root)
        self._vault = vault
        self._changing = FileLock(shared_dir / "agents.lock")

    def list_files(self, agent: str | None) -> list[AgentFile]:
        """List the files that there are, without their text.

        Raises:
            FileRefused: the agent's id is not one.
        """
        names = SHARED if agent is None else (*OWN, *self._logs(agent))
        found = ((name, self._tree.stat(self._place(agent, name))) for name in names)
        return [
            AgentFile(name, status.st_size, status.st_mtime)
            for name, status in found
            if status is not None
        ]

    def stamp(self, agent: str | None) -> tuple[tuple[int, int, int] | None, ...]:
        """Return a value that differs once one of the files was written, logs left out.

        Raises:
            FileRefused: the agent's id is not one.
        """
        names = SHARED if agent is None else OWN
        found = (self._tree.stat(self._place(agent, name)) for name in names)
        return tuple(
            None if each is None else (each.st_ino, each.st_mtime_ns, each.st_size)
            for each in found
        )

    def read(self, agent: str | None, path: str) -> AgentFile | None:
        """Read a file; None if there is none. What is wrong with its text is told with it.

        Raises:
            FileRefused: the name is not allowed, or it is a link.
        """
        place = self._place(agent, path)
        status = self._check(place, path)
        if status is None:
            return None
        limit = _limit(path)
        try:
            content = self._tree.read(place, limit + 1)
        except OSError as error:
            raise _unusable(path, error) from error
        text = content[:limit].decode(errors="replace")
        return AgentFile(
            path,
            status.st_size,
            status.st_mtime,
            self._vault.redact(text),
            _problem(path, content),
        )

    def read_all(self, agent: str | None) -> list[AgentFile]:
        """Read every file that there is, each with what is wrong with it."""
        return [self.read(agent, each.path) or each for each in self.list_files(agent)]

    def write(self, agent: str | None, path: str, text: str, *, expected: str = "") -> AgentFile:
        """Write a file; `expected` is the digest of the text that is to be replaced.

        Raises:
            FileRefused: the name or the text is not allowed.
            Conflict: the file has another text than expected.
        """
        with self._changing:
            before = self.read(agent, path)
            if expected and (before is None or before.digest != expected):
                raise Conflict(f"{path} was changed meanwhile. Read it again, then change it.")
            return self._put(agent, path, text)

    def change(self, agent: str | None, path: str, edit: Callable[[str], str]) -> AgentFile:
        """Write what `edit` makes of the text, which is empty if there is no file.

        No other change of a bridge comes in between.

        Raises:
            FileRefused: the name or the text is not allowed.
        """
        with self._changing:
            before = self.read(agent, path)
            return self._put(agent, path, edit("" if before is None else before.text))

    def delete(self, agent: str | None, path: str) -> None:
        """Delete a file; it can be undone.

        Raises:
            FileRefused: the name is not allowed.
            NotFound: there is no such file.
        """
        with self._changing:
            place = self._place(agent, path)
            if self._check(place, path) is None:
                raise NotFound("file", path)
            self._keep(agent, path)
            self._remove(place, path)

    def erase_logs(self, agent: str, before: date) -> list[str]:
        """Delete an agent's daily logs of the days before one, with all versions; returns the days.

        Raises:
            FileRefused: one cannot be removed.
        """
        with self._changing:
            gone = [path for path in self._logs(agent) if path < log_of(before)]
            for path in gone:
                self._remove(self._place(agent, path), path)
                self._remove(self._kept(agent, path), path)
        return [path.removesuffix(".md").rpartition("/")[2] for path in gone]

    def versions(self, agent: str | None, path: str) -> list[Version]:
        """List what a file was before, the last first.

        Raises:
            FileRefused: the name is not allowed.
        """
        self._place(agent, path)
        try:
            found = self._tree.entries(self._kept(agent, path), 2 * VERSIONS_KEPT)
        except OSError:
            return []
        versions = [
            Version(
                int(each.name.removesuffix(_GONE)),
                each.status.st_size,
                each.status.st_mtime,
                each.name.endswith(_GONE),
            )
            for each in found
            if each.is_file and each.name.removesuffix(_GONE).isdecimal()
        ]
        return sorted(versions, key=lambda version: version.number, reverse=True)

    def version(self, agent: str | None, path: str, number: int) -> str | None:
        """Return the text of a version; None if there was no such file.

        Raises:
            FileRefused: the name is not allowed.
            NotFound: it is not kept.
        """
        found = next((v for v in self.versions(agent, path) if v.number == number), None)
        if found is None:
            raise NotFound("version", number)
        if found.gone:
            return None
        content = self._tree.read(self._kept(agent, path) / str(number), _limit(path))
        return self._vault.redact(content.decode(errors="replace"))

    def undo(self, agent: str | None, path: str, number: int | None = None) -> AgentFile | None:
        """Bring a version back, by default the last; this is a change that can be undone, too.

        Returns the file, or None if there was none.

        Raises:
            FileRefused: the name is not allowed.
            NotFound: nothing is kept.
        """
        with self._changing:
            kept = self.versions(agent, path)
            if not kept:
                raise NotFound("earlier version of", path)
            text = self.version(agent, path, kept[0].number if number is None else number)
            if text is not None:
                return self._put(agent, path, text)
            if self.read(agent, path) is not None:
                self.delete(agent, path)
            return None

    def _put(self, agent: str | None, path: str, text: str) -> AgentFile:
        text = self._vault.redact(text.replace("\r\n", "\n"))
        try:
            content = text.encode()
        except UnicodeEncodeError:
            raise FileRefused(path, "is not text", "Write it in UTF-8.") from None
        if problem := _problem(path, content):
            raise FileRefused(path, "cannot be written like this", problem)
        place = self._place(agent, path)
        self._check(place, path)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._keep(agent, path)
        try:
            self._tree.replace(place, content)
        except OSError as error:
            raise _unusable(path, error) from error
        written = self.read(agent, path)
        if written is None:
            raise Conflict(f"{path} was removed while it was written. Try again.")
        return written

    def _keep(self, agent: str | None, path: str) -> None:
        """Keep what a file is now as a version, and drop the oldest."""
        place, folder = self._place(agent, path), self._kept(agent, path)
        kept = self.versions(agent, path)
        number = kept[0].number + 1 if kept else 1
        status = self._tree.stat(place)
        try:
            if status is None:
                self._tree.write(folder / f"{number}{_GONE}", b"")
            else:
                content = self._tree.read(place, _limit(path))
                self._tree.write(folder / str(number), content, like=status)
        except OSError as error:
            raise _unusable(path, error) from error
        for old in kept[VERSIONS_KEPT - 1 :]:
            self._remove(folder / f"{old.number}{_GONE if old.gone else ''}", path)

    def _remove(self, place: PurePosixPath, path: str) -> None:
        try:
            self._tree.remove(place)
        except OSError as error:
            raise _unusable(path, error) from error

    def _place(self, agent: str | None, path: str) -> PurePosixPath:
        """Return where an allowed file is, below the folder of all."""
        if not is_allowed(agent, path):
            names = SHARED if agent is None else (*OWN, f"{_LOGS}/YYYY-MM-DD.md")
            raise FileRefused(path, "is not a file of an agent", f"Use {', '.join(names)}.")
        return self._folder(agent) / path

    def _kept(self, agent: str | None, path: str) -> PurePosixPath:
        return self._folder(agent) / _VERSIONS / path

    def _folder(self, agent: str | None) -> PurePosixPath:
        if agent is None:
            return PurePosixPath()
        if not _ID.fullmatch(agent):
            raise FileRefused(agent, "is not the id of an agent", "Use an agent of this bridge.")
        return PurePosixPath(agent)

    def _check(self, place: PurePosixPath, path: str) -> os.stat_result | None:
        """Return the status of a plain file in plain folders; None if there is none."""
        if self._root.is_symlink():
            raise _odd(path)
        for folder in reversed(place.parents[:-1]):
            found = self._tree.entry(folder)
            if found is not None and not found.is_folder:
                raise _odd(path)
        file = self._tree.entry(place)
        if file is not None and not file.is_file:
            raise _odd(path)
        return None if file is None else file.status

    def _logs(self, agent: str) -> Iterator[str]:
        """List the names of an agent's daily logs, the last first."""
        try:
            found = self._tree.entries(self._folder(agent) / _LOGS, _MOST_LOGS)
        except OSError:
            return
        for name in sorted((each.name for each in found if each.is_file), reverse=True):
            if is_allowed(agent, path := f"{_LOGS}/{name}"):
                yield path


def is_allowed(agent: str | None, path: str) -> bool:
    """Tell whether an agent, or the folder of all, can have a file of this name."""
    if agent is None or path in OWN:
        return path in (SHARED if agent is None else OWN)
    day = _LOG.fullmatch(path)
    try:
        return day is not None and bool(date.fromisoformat(day[1]))
    except ValueError:
        return False


def log_of(day: date) -> str:
    """Return the name of a day's log."""
    return f"{_LOGS}/{day.isoformat()}.md"


def _limit(path: str) -> int:
    return LOG_BYTES if _LOG.fullmatch(path) else FILE_BYTES


def _problem(path: str, content: bytes) -> str:
    """Say what is wrong with a text, and what to do."""
    if len(content) > (limit := _limit(path)):
        return f"It has more than {limit // 1024} KiB. Shorten it."
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "It is not UTF-8 text. Write it in UTF-8."
    if found := _CONTROLS.search(text):
        line = text.count("\n", 0, found.start()) + 1
        return f"Line {line}: there is a control character. Remove it."
    return read_identity(text).problem if path == IDENTITY else ""


def _odd(path: str) -> FileRefused:
    return FileRefused(
        path, "is not a plain file in a plain folder", "Remove the link or what is in its place."
    )


def _unusable(path: str, error: OSError) -> FileRefused:
    return FileRefused(
        path,
        f"cannot be used: {error.strerror}",
        "Look at the folder agents in DATA_DIR: its owner, its space, and links in it.",
    )
