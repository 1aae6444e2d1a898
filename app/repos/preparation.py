"""Prepares a new clone once: checks large files, adds submodules, runs its setup.

The bridge fetches; checkout and setup run in the agent's isolation. Nothing from a repository runs
or is obeyed anywhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.errors import GitFailed, RepositoryError, RepositoryGone
from app.model.workspaces import Clone, Repository, Target
from app.repos import clone as clones
from app.repos.agent_remote import FOLDER
from app.repos.git import Git
from app.repos.lfs import is_used
from app.repos.mirror import Mirrors
from app.repos.sandboxed_git import Inside
from app.repos.trees import MOST_SUBMODULES, SUBMODULE_DEPTH, Submodule, find_source, is_at_home

SETUP: Final = ".agent-bridge/setup"
_SETUP_BYTES: Final = 1024 * 1024
_SETUP_SECONDS: Final = 600.0
"""How long preparing a clone may take: packages are downloaded then."""
_SETUP_WORDS: Final = 4000
"""What is kept of its output: the end, where the errors are."""
_PRIVATE: Final = (
    "A private submodule is fetched only from the repository's own host, if the default branch "
    "names it and the agent may read it."
)
_NAMED: Final = 5
"""How many files a note names: enough to know what it is about."""


@dataclass(frozen=True, slots=True)
class _Level:
    """A repository in a clone whose submodules are fetched: the clone itself, or a submodule."""

    repository: Repository
    commit: str
    path: str = "."
    depth: int = 0
    trusted: bool = True
    """Whether what its default branch names is fetched with a token or a key."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Prepares new clones."""

    git: Git
    mirrors: Mirrors
    gates: Path
    inside: Callable[..., Inside]
    """Enters a clone in its agent's isolation, with further paths to see."""
    has_lfs: Callable[[], bool]
    variables: Mapping[Target, Mapping[str, str]] = field(repr=False)
    """What the setup of each repository gets."""

    async def run(self, clone: Clone) -> str | None:
        """Prepare a new clone; returns what to tell people about it, None if nothing."""
        commit = await clones.head(self.inside(clone))
        said = [
            self._say_what_is_fetched(clone),
            await self._look_at_large_files(clone, commit),
            *await self._add_submodules(clone, commit),
            await self._set_up(clone),
        ]
        return "\n".join(filter(None, said)) or None

    def _say_what_is_fetched(self, clone: Clone) -> str:
        if not self.mirrors.is_larger_than_set(clone.repository):
            return ""
        return (
            f"All files of {clone.repository.name} are fetched although its `clone` is `partial`: "
            "its server does not support partial clones, or the bridge already had all of them."
        )

    async def _look_at_large_files(self, clone: Clone, commit: str) -> str:
        """Say which large files are not there."""
        if not await is_used(self.git, self.mirrors.path(clone.repository), commit):
            return ""
        if not self.has_lfs():
            return (
                "Some files of this repository are stored with Git LFS, but git-lfs is not "
                "installed on the bridge's machine, so the clone has pointers instead. Install it "
                "(on Debian: `apt install git-lfs`) and start a new session."
            )
        try:
            listed = await self.inside(clone).git("lfs", "ls-files")
        except GitFailed as error:
            return f"Could not list the Git LFS files: {error}"
        lines = (line.split(" ", 2) for line in listed.decode(errors="replace").splitlines())
        missing = [path for _, mark, path in lines if mark == "-"]
        if not missing:
            return ""
        named = ", ".join(missing[:_NAMED])
        return (
            "Some Git LFS files could not be fetched, so the clone has pointers instead "
            f"({len(missing)}): {named}. Run `git lfs pull` to try again and see why."
        )

    async def _add_submodules(self, clone: Clone, commit: str) -> list[str]:
        """Fetch submodules, and theirs, and check them out in the agent's isolation."""
        troubles: list[str] = []
        levels = [_Level(clone.repository, commit)]
        brought = 0
        while levels:
            level = levels.pop(0)
            for submodule in await self.mirrors.submodules(level.repository, level.commit):
                here = submodule.path if level.path == "." else f"{level.path}/{submodule.path}"
                if level.depth == SUBMODULE_DEPTH or brought == MOST_SUBMODULES:
                    troubles.append(f"The submodule {here} is left out: there are too many.")
                    continue
                brought += 1
                try:
                    deeper = await self._add_submodule(clone, level, submodule, here)
                except RepositoryGone as error:
                    troubles.append(f"The submodule {here} is missing: {error.words}. {_PRIVATE}")
                    continue
                except RepositoryError as error:
                    troubles.append(f"The submodule {here} is missing: {error}")
                    continue
                levels.append(deeper)
        return troubles

    async def _add_submodule(
        self, clone: Clone, level: _Level, submodule: Submodule, here: str
    ) -> _Level:
        child = find_source(level.repository, submodule)
        if child is None:
            raise RepositoryError("the bridge does not fetch from addresses of this kind.")
        commit = await self.mirrors.link(level.repository, level.commit, submodule.path)
        if commit is None:
            raise RepositoryError("the repository names no commit of it.")
        trusted = await self._is_trusted(clone, level, child)
        agent = clone.agent if trusted else None
        # Whole: from inside a submodule nothing can be fetched later.
        mirror = await self.mirrors.refresh(child, agent, whole=True)
        if await self.mirrors.commit(child, commit) is None:
            await self.mirrors.refresh(child, agent, commit, whole=True)
        await self.mirrors.check_size(child, commit)
        inside = self.inside(clone, mirror)
        there = ("-C", level.path)
        await inside.git(*there, "config", f"submodule.{submodule.name}.url", str(mirror))
        await inside.git(*there, "config", f"submodule.{submodule.name}.update", "checkout")
        await inside.git(
            *there, *("submodule", "--quiet", "update", "--init", "--", submodule.path)
        )
        return _Level(child, commit, here, level.depth + 1, trusted)

    async def _is_trusted(self, clone: Clone, level: _Level, child: Repository) -> bool:
        """Tell whether a token or key may be used: on the same host, named by the default branch.

        A submodule that only a branch names may come from a stranger who wants something fetched
        that they may not read.
        """
        if not level.trusted or not is_at_home(clone.repository, child):
            return False
        named = await self.mirrors.submodules(level.repository, "HEAD")
        return child in [find_source(level.repository, each) for each in named]

    async def _set_up(self, clone: Clone) -> str | None:
        """Run `.agent-bridge/setup` in a new clone; returns its output, None if there is none.

        Only the one on the default branch: a branch must not add code that runs before a person
        has seen it.
        """
        script = await self.mirrors.read(clone.repository, SETUP, limit=_SETUP_BYTES)
        if script is None:
            return None
        file = self.gates / clone.folder.name / FOLDER / "setup"
        await asyncio.to_thread(file.write_bytes, script)
        file.chmod(0o755)
        refusals = _Refusals()
        try:
            status, written, words = await self.inside(clone).run(
                str(file),
                seconds=_SETUP_SECONDS,
                limit=_SETUP_BYTES,
                name=SETUP,
                more=self.variables.get(clone.repository, {}),
                witness=refusals,
            )
        except GitFailed as error:
            return "\n".join([f"`{SETUP}` failed: {error.words}", *refusals.notes])
        said = f"{written.decode(errors='replace')}\n{words}".strip()[-_SETUP_WORDS:]
        ended = f"`{SETUP}` ended with status {status}."
        return "\n".join([ended, *refusals.notes, said]).strip()


@dataclass(frozen=True, slots=True)
class _Refusals:
    """Keeps what a setup was not allowed to connect to; it asks no one."""

    notes: list[str] = field(default_factory=list)

    async def note(self, words: str) -> None:
        """Keep the words."""
        self.notes.append(words)

    async def ask(self, host: str, port: int) -> bool | None:  # noqa: ARG002 - a port of `Witness`
        """Ask no one."""
        return None
