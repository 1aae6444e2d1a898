"""Ports for erasing: the rows of all tables, the files of DATA_DIR, the repositories on disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from app.model.erasure import FoundFiles, Person, Purge, Trail
from app.model.workspaces import Repository
from app.vault.octets import Known


class PurgeStore(Protocol):
    """What has been purged, and the rows of all tables."""

    async def list(self) -> Sequence[Purge]:
        """List all purges, the first one first."""
        ...

    async def keep(self, purge: Purge) -> None:
        """Store a purge, sealed, in place of what is known of it."""
        ...

    async def machines(self) -> Mapping[str, str]:
        """Return the hosts of all machines that are or were members, by the member's name."""
        ...

    async def reach(self, purge: str, member: str) -> None:
        """Note that a member that was away has cleaned its machine."""
        ...

    async def trace(self, vault: Known) -> Trail:
        """Find what the vault knows, in every column of every table."""
        ...

    async def redact(self, vault: Known, *, only_words: bool = False) -> int:
        """Take what the vault knows out of every row; returns how many were changed.

        With `only_words`, ids, addresses and raw events stay as they are.
        """
        ...


class PersonStore(Protocol):
    """What the store knows of people."""

    async def find(self, words: str) -> Sequence[Person]:
        """List the people whose name or id has these words."""
        ...

    async def trace(self, service: str, who: str) -> Person | None:
        """Find what is known of a person; None if they have said nothing."""
        ...

    async def keep(self, person: Person) -> None:
        """Store, sealed, that a person is to be forgotten."""
        ...

    async def unfinished(self) -> Sequence[Person]:
        """List the people who are not forgotten yet."""
        ...

    async def forget(self, person: Person) -> int:
        """Delete what a person said, decided and planned; returns how many rows were changed."""
        ...

    async def reach(self, person: Person, member: str) -> None:
        """Note that a member that was away has cleaned its machine; the last one ends it."""
        ...

    async def done(self, person: Person) -> None:
        """Forget also that the person was to be forgotten."""
        ...


class Files(Protocol):
    """All files that the bridge keeps; each method may take a while."""

    def find(self, known: Known, *, shared: bool = True) -> FoundFiles:
        """List the files and folders that hold what is known, on this machine or shared too."""
        ...

    def clean(self, known: Known, held: Collection[Path]) -> Sequence[Path]:
        """Overwrite it in plain files; returns what could not be changed."""
        ...


class Repositories(Protocol):
    """All repositories on this disk."""

    async def holds(self, repository: Path, known: Known) -> bool:
        """Tell whether an object of a repository holds a text; those that it borrows do not count.

        Raises:
            GitFailed: they cannot be read.
            OSError: they cannot be found.
        """
        ...

    def mirror_of(self, repository: Repository) -> Path:
        """Return where the mirror of a repository is, or would be."""
        ...

    async def delete_mirror(self, mirror: Path) -> None:
        """Delete a mirror: the next clone that is opened fetches it again.

        Raises:
            RepositoryError: another machine works on it.
            OSError: it cannot be deleted.
        """
        ...
