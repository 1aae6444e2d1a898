"""Works in folders of people: what git obeys there is kept from agents, and git only reads.

A person's git obeys the hooks of a folder, its configuration and every program that these name. All
of `.git` counts, since one new file in it (`commondir`) puts another configuration in the place of
the one that is there. Nothing of that is run here: git only reads its configuration and its index.

What the owner has told git about files counts as far as the agent cannot write it. The files of
these settings are shown to git in the agent's isolation by their paths and never copied, so it
reads no more than its user may.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.children.sandbox import Plain
from app.errors import GitFailed, RepositoryError
from app.model.workspaces import Diff
from app.repos import differences
from app.repos.differences import InPlace
from app.repos.git import Git
from app.repos.sandboxed_git import Inside, SandboxedGit

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
        paths = [
            here / (home / word[2:] if word.startswith("~/") else word) for word in _words(value)
        ]
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


_VALUES: Final = frozenset(
    f"core.{name}"
    for name in ("autocrlf", "eol", "filemode", "ignorecase", "precomposeunicode", "symlinks")
)
_FILES: Final = {"core.excludesFile": "ignore", "core.attributesFile": "attributes"}
"""Settings that name a file, with the name of the usual one."""
_FILTERS: Final = frozenset({"clean", "process"})
"""What turns a file into what git stores; without `required`, a failing one counts as none."""


@dataclass(frozen=True, slots=True)
class OwnerSettings:
    """How the owner's git looks at files."""

    settings: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    """What git must see for that."""


async def read_owner_settings(
    git: Git, folder: Path, repository: Path | None, person: Mapping[str, str]
) -> OwnerSettings:
    """Read the settings of a folder's owner, and of its repository if the agent cannot write it.

    Raises:
        GitFailed: git cannot read them.
    """
    home, config = _home_of(folder, person)
    named = [Path("/etc/gitconfig"), config / "git" / "config", home / ".gitconfig"]
    named += [] if repository is None else [repository / "config"]
    included = "".join(f"[include]\n\tpath = {_quote(path)}\n" for path in named)
    listed = await git.run(
        repository or Path("/"),
        *("config", "--file", "-", "--includes", "--list", "-z"),
        given=included.encode(errors="surrogateescape"),
        more={"HOME": str(home)},
    )
    entries = listed.decode(errors="surrogateescape").split("\0")
    told = {key: value for key, _, value in (entry.partition("\n") for entry in entries)}
    chosen = {key: value for key, value in told.items() if key in _VALUES or _is_filter(key)}
    files: list[Path] = []
    for key, usual in _FILES.items():
        value = told.get(key.lower(), str(config / "git" / usual))
        path = folder / (home / value[2:] if value.startswith("~/") else value)
        chosen[key] = str(path) if os.access(path, os.R_OK) else os.devnull
        files += [path] if path.is_file() else []
    return OwnerSettings(chosen, tuple(files))


def _home_of(folder: Path, person: Mapping[str, str]) -> tuple[Path, Path]:
    """Return the home of a folder's owner, and where their settings are."""
    owner = folder.stat().st_uid
    if os.geteuid() == 0 and owner != 0:
        try:
            home = Path(pwd.getpwuid(owner).pw_dir)
        except KeyError:
            home = Path("/nonexistent")
        return home, home / ".config"
    home = Path(person.get("HOME", "/nonexistent"))
    return home, Path(person.get("XDG_CONFIG_HOME") or home / ".config")


def _is_filter(key: str) -> bool:
    return key.startswith("filter.") and key.rpartition(".")[2] in _FILTERS


def _quote(path: Path) -> str:
    """Write a path as git's configuration has it."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class FoldersInPlace:
    """The folders of people that agents work in."""

    def __init__(
        self, git: Git, isolation: Callable[[str], SandboxedGit], person: Mapping[str, str]
    ) -> None:
        """Look at them with `isolation` of an agent; `person` are the variables of the bridge."""
        self._git = git
        self._isolation = isolation
        self._person = person

    async def protected(self, folder: Path, agent: str) -> tuple[Path, ...]:
        """Return what an agent must not change in a person's folder, since git obeys it.

        Raises:
            RepositoryError: it cannot be determined.
        """
        if not self._is_protected(agent):
            return ()  # nothing could be kept from it
        return await find_programs(self._git, folder)

    async def changes(self, folder: Path, own: Path, agent: str, *, began: int) -> Sequence[Diff]:
        """Show what is uncommitted in a person's folder; `own` is the session's own folder.

        What changed after the session began, in nanoseconds, may be the agent's.
        """
        place = InPlace(folder, began, self._is_protected(agent))
        inside = await self._inside(place, own, agent)
        return await differences.changes_in_place(inside, place)

    async def find_repositories(
        self, folder: Path, own: Path, agent: str, *, began: int
    ) -> Sequence[str]:
        """List the repositories in a person's folder that its agent made or changed.

        None without isolation: its agent needs no repository to run programs.
        """
        place = InPlace(folder, began, self._is_protected(agent))
        if not place.is_protected:
            return ()
        inside = await self._inside(place, own, agent)
        return await differences.find_repositories(inside, place)

    def _is_protected(self, agent: str) -> bool:
        return not isinstance(self._isolation(agent).sandbox, Plain)

    async def _inside(self, place: InPlace, own: Path, agent: str) -> Inside:
        repository = find_repository(place.folder) if place.is_protected else None
        owner = await read_owner_settings(self._git, place.folder, repository, self._person)
        isolation = self._isolation(agent).as_owner_of(place.folder)
        return Inside(
            isolation,
            own,
            own.name,
            (place.folder, *owner.files, *filter(None, (repository,))),
            self._git.bridge,
            owner.settings,
            reads=place.folder,
        )
