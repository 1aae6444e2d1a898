"""Joins what saves the work of sessions for other machines: where it is stored, and what of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from app.agents.isolation import Shelter, homes_root
from app.children.packing import name_content, pack, unpack
from app.children.users import give
from app.clock import Clock
from app.config import Configuration
from app.core.saved_folders import FolderKind, SavedFolders
from app.descent import remove
from app.model.folders import folder_name
from app.model.ports import Shelf
from app.model.types import Session
from app.shelf.bucket import BucketShelf
from app.shelf.folder import FolderShelf
from app.store.folders import SavedFolderStore


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


class Saving:
    """What one bridge saves for others, and where."""

    def __init__(self, configuration: Configuration, key: SecretStr) -> None:
        """Save in the bucket that is set, sealed with the key, else in SHARED_DIR.

        Raises:
            ConfigurationError: the bucket cannot be used.
        """
        self._configuration = configuration
        self.folder = configuration.shared_dir / "kept"
        """Where it is saved, if not in a bucket."""
        self._bucket = None if configuration.bucket is None else BucketShelf(configuration.bucket)
        self.shelf: Shelf = FolderShelf(self.folder)
        if self._bucket is not None:
            # The imports take 0.05 s, and few bridges need them.
            from app.config.sealing import Sealer  # noqa: PLC0415
            from app.shelf.sealed import SealedShelf  # noqa: PLC0415

            self.shelf = SealedShelf(self._bucket, Sealer(key))

    def forget(self, sessions: Collection[int], ending: str) -> None:
        """Remove what a bucket holds of sessions: what is in folders with this ending."""
        if self._bucket is not None:
            self._bucket.remove_all([f"{session}-" for session in sessions], f"{ending}/")

    def forget_all(self, sessions: Collection[int]) -> None:
        """Remove everything that is saved of sessions; their next turns save it again."""
        if self._bucket is not None:
            self._bucket.remove_all([f"{session}-" for session in sessions], "/")
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            number = path.name.partition("-")[0]
            if number.isdecimal() and int(number) in sessions:
                remove(path)

    def folders(
        self,
        shelters: Mapping[str, Shelter],
        records: SavedFolderStore,
        clock: Clock,
        machine: str,
    ) -> SavedFolders | None:
        """Save the folders that sessions have on one machine; None if there is one machine."""
        configuration = self._configuration
        own, is_shared = configuration.data_dir, configuration.shared_dir != configuration.data_dir
        if self._bucket is None and not is_shared:
            return None
        user_of = partial(_user_of, shelters)
        kinds: dict[str, FolderKind] = {"folder": SessionFolders(own / "workspaces", user_of)}
        if not is_shared:
            left_out = partial(_provided, shelters)
            kinds["home"] = SessionFolders(homes_root(configuration), user_of, left_out)
        return SavedFolders(kinds, self.shelf, records, own / "packing", clock, machine)


def _user_of(shelters: Mapping[str, Shelter], agent: str) -> int | None:
    shelter = shelters.get(agent)
    return shelter.user if shelter else None


def _provided(shelters: Mapping[str, Shelter], agent: str) -> tuple[str, ...]:
    """List what a home gets again at its next start: log-ins stay out of the bucket."""
    shelter = shelters.get(agent)
    return () if shelter is None or shelter.homes is None else shelter.homes.provided
