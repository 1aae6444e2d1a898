"""Joins what saves the work of sessions for other machines: where it is stored, and what of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.agents.isolation import Shelter
from app.children.packing import name_content, pack, unpack
from app.children.users import give
from app.config import Configuration
from app.core.folders import folder_name
from app.core.ports import Clock, Shelf
from app.core.saved_folders import FolderKind, SavedFolders
from app.core.stores.folders import SavedFolderStore
from app.core.types import Session
from app.shelf.folder import FolderShelf


@dataclass(frozen=True, slots=True)
class SessionFolders:
    """The folders of all sessions below one folder."""

    root: Path
    user_of: Callable[[str], int | None]
    left_out: Callable[[str], tuple[str, ...]] = lambda _agent: ()
    """What of an agent's folder is not packed."""

    def name_content(self, session: Session) -> str:
        """Return a name that changes with the files; empty if there are none."""
        return name_content(self._folder(session), self.left_out(session.key.agent))

    def pack(self, session: Session, into: Path) -> None:
        """Pack the files."""
        pack(self._folder(session), into, self.left_out(session.key.agent))

    def unpack(self, session: Session, file: Path) -> None:
        """Put packed files in place of what is there."""
        user = self.user_of(session.key.agent)
        unpack(file, self._folder(session), user)
        give(self._folder(session), user)

    def _folder(self, session: Session) -> Path:
        return self.root / folder_name(session)


def open_shelf(configuration: Configuration) -> Shelf:
    """Open the place where the work of sessions is saved."""
    return FolderShelf(configuration.shared_dir / "kept")


def save_folders(
    configuration: Configuration,
    shelters: Mapping[str, Shelter],
    shelf: Shelf,
    records: SavedFolderStore,
    clock: Clock,
    machine: str,
) -> SavedFolders | None:
    """Save the folders that sessions have on one machine; None if there is one machine."""
    if configuration.shared_dir == configuration.data_dir:
        return None
    user_of = partial(_user_of, shelters)
    workspaces = configuration.data_dir / "workspaces"
    kinds: dict[str, FolderKind] = {"folder": SessionFolders(workspaces, user_of)}
    return SavedFolders(kinds, shelf, records, configuration.data_dir / "packing", clock, machine)


def _user_of(shelters: Mapping[str, Shelter], agent: str) -> int | None:
    shelter = shelters.get(agent)
    return shelter.user if shelter else None
