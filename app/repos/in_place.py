"""Finds what makes git run programs in a folder that agents work in, so that they cannot change it.

The folder is a person's: their git obeys its hooks, its configuration and every program that these
name. All of `.git` counts, since one new file in it (`commondir`) puts another configuration in the
place of the one that is there. Nothing is run here: git only reads its configuration and its index.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.errors import GitFailed, RepositoryError
from app.repos.git import Git

_NO_PROGRAMS: Final = frozenset({"branch", "remote", "submodule", "url", "user"})
"""Sections of git's configuration whose values are names, not programs."""
_INDEX_BYTES: Final = 512 * 1024**2
"""The largest index that is read: some four million files."""
_DEPTH: Final = 5
"""How deep submodules are followed: as deep as the bridge checks them out itself."""


@dataclass(slots=True)
class _Search:
    """What was found in one folder."""

    git: Git
    root: Path
    found: dict[Path, None] = field(default_factory=dict)

    async def repository(self, worktree: Path, depth: int = 0) -> None:
        """Add what belongs to one repository, and to its submodules."""
        folder = _git_folder(worktree)
        common = folder / _first_line(folder / "commondir")
        for path in (worktree / ".git", folder, common):
            self.protect(path)
        for origin, key, value in await self._settings(folder):
            await asyncio.to_thread(self._add_entry, worktree, origin, key, value)
        for link in await self._links(folder):
            await self._submodule(worktree / link, depth + 1)

    async def _submodule(self, worktree: Path, depth: int) -> None:
        if not worktree.is_relative_to(self.root):
            return
        if (worktree / ".git").exists() and depth <= _DEPTH:
            await self.repository(worktree, depth)
        else:
            # It is not checked out: what fills it decides what git obeys in it.
            self.protect(worktree)

    async def _settings(self, folder: Path) -> list[tuple[Path, str, str]]:
        """Read the configuration of a repository: the file, the key and the value of each entry."""
        listed = await self.git.run(folder, "config", "--list", "--includes", "--show-origin", "-z")
        words = listed.decode(errors="surrogateescape").split("\0")
        return [
            (folder / origin.removeprefix("file:"), *_entry(entry))
            for origin, entry in zip(words[::2], words[1::2], strict=False)
            if origin.startswith("file:")
        ]

    async def _links(self, folder: Path) -> list[str]:
        """List the paths of submodules in the index of a repository."""
        listed = await self.git.run(folder, "ls-files", "--stage", "-z", limit=_INDEX_BYTES)
        lines = listed.decode(errors="surrogateescape").split("\0")
        return [line.partition("\t")[2] for line in lines if line.startswith("160000 ")]

    def _add_entry(self, worktree: Path, origin: Path, key: str, value: str) -> None:
        """Add the file that contains an entry, and the paths in the folder that its value names."""
        self._add(origin)
        section, _, name = key.partition(".")
        if section in _NO_PROGRAMS or key == "core.worktree":
            return
        here = origin.parent if section in {"include", "includeif"} else worktree
        home = Path(self.git.surroundings.get("HOME", "/"))
        paths = [here / _without_tilde(word, home) for word in _words(value)]
        # What git obeys as soon as it exists must not be created by the agent.
        if section in {"include", "includeif"}:
            self.protect(paths[0], is_folder=False)
        elif (section, name) == ("core", "hookspath"):
            self.protect(paths[0])
        for path in filter(_exists, paths):
            self._add(path)

    def protect(self, path: Path, *, is_folder: bool = True) -> None:
        """Add what git obeys as soon as it exists; it is created if it is missing."""
        plain = Path(os.path.normpath(path))
        if self.root not in plain.parents:
            return
        for step in (plain, *plain.parents):
            if self.root in step.parents and step.is_symlink():
                raise RepositoryError(
                    f"{step} is a symbolic link, which cannot be protected from the agent. Put "
                    "what it points to in its place, or choose another folder."
                )
        if is_folder and not plain.exists():
            plain.mkdir(parents=True)
        elif not plain.exists():
            plain.parent.mkdir(parents=True, exist_ok=True)
            plain.touch()
        self._add(plain)

    def _add(self, path: Path) -> None:
        real = path.resolve()
        if self.root in real.parents:
            self.found[real] = None


async def find_programs(git: Git, root: Path) -> tuple[Path, ...]:
    """List what in a folder an agent must not change, since git would run programs for it.

    The folder is named by its real path. What is missing and would be obeyed is created empty, so
    that the agent cannot create it.

    Raises:
        RepositoryError: it cannot be determined, or cannot be protected from the agent.
    """
    search = _Search(git, root)
    try:
        search.protect(root / ".git")
        worktree = next(_repositories(root), None)
        if worktree is not None:
            await search.repository(worktree)
    except (GitFailed, OSError) as error:
        raise RepositoryError(
            f"The repository in {root} cannot be read ({error}), so what git runs there cannot be "
            "protected from the agent. Repair it, or choose another folder."
        ) from error
    return tuple(path for path in search.found if search.found.keys().isdisjoint(path.parents))


def find_repository(folder: Path) -> Path | None:
    """Return the repository that git uses in a folder: with its configuration, `.git` mostly."""
    worktree = next(_repositories(folder), None)
    if worktree is None:
        return None
    git = _git_folder(worktree)
    return Path(os.path.normpath(git / _first_line(git / "commondir")))


def _repositories(folder: Path) -> Iterator[Path]:
    """Yield the folders, from here upwards, in which git finds a repository."""
    for each in (folder, *folder.parents):
        if (each / ".git").is_file() or (each / ".git" / "HEAD").exists():
            yield each


def _git_folder(worktree: Path) -> Path:
    """Return the repository of a worktree; `.git` may be a file that names it."""
    own = worktree / ".git"
    if own.is_dir():
        return own
    return worktree / _first_line(own).removeprefix("gitdir:").strip()


def _first_line(file: Path) -> str:
    return file.read_text(errors="surrogateescape").partition("\n")[0] if file.is_file() else ""


def _entry(entry: str) -> tuple[str, str]:
    """Split an entry; the middle of a key, as in `includeIf.gitdir:x.path`, is left out."""
    key, _, value = entry.partition("\n")
    section, _, rest = key.partition(".")
    return f"{section}.{rest.rpartition('.')[2]}", value


def _without_tilde(word: str, home: Path) -> str:
    return str(home / word[2:]) if word.startswith("~/") else word


def _exists(path: Path) -> bool:
    """Tell whether there is such a file; a command may be too long to be the name of one."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _words(value: str) -> list[str]:
    """List what in a value may be a path, first all of it; a command is written for a shell."""
    try:
        words = shlex.split(value.removeprefix("!"))
    except ValueError:
        words = value.split()
    return [value, *words]
