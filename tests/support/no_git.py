"""Workspaces without git: empty folders, as places without a repository have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.clock import Clock
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones
from app.core.repositories.directory import Directory
from app.core.repositories.folders import Folders
from app.services import find_area, find_repository
from app.store.stores import Stores
from app.vault import Vault
from tests.support.base import make_base


class NoGit:
    """A git that has nothing to do: no place has a repository, so nobody may ask for a clone."""

    async def close(self, folder: Path) -> None:
        """There is no gate to close."""

    async def pause(self, folder: Path) -> None:
        """There is no gate to pause."""

    def resume(self, folder: Path) -> None:
        """There is no gate to resume."""

    def visible(self, folder: Path) -> tuple[Path, ...]:
        return ()

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"nobody has a repository here, and yet `{name}` was wanted")


def directory(folder: Path) -> Directory:
    """Make settings in which no place has a repository."""
    return Directory(
        "https://git.example.com",
        folder / "person",
        folder / "data",
        find_area=find_area,
        own_repository=find_repository,
    )


def empty_folders(folder: Path, stores: Stores, clock: Clock, vault: Vault) -> RepoProvider:
    """Give every session an empty folder."""
    folders = Folders(folder / "workspaces", folder / "uploads", folder / "session-homes")
    git: Any = NoGit()
    base = make_base(stores, clock, vault=vault)
    clones = Clones(base, folders.root, git)
    return RepoProvider(base, folders, clones, git, directory(folder))
