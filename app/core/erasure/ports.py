"""Ports for erasing: the rows of all tables, the files of DATA_DIR, the repositories on disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from app.core.erasure.types import Purge, Sweeping, Trail
from app.core.workspaces import Clone
from app.vault import Vault


class PurgeStore(Protocol):
    """What has been purged, and the rows of all tables."""

    async def list(self) -> Sequence[Purge]:
        """List all purges, the first one first."""
        ...

    async def keep(self, purge: Purge) -> None:
        """Store a purge, sealed, in place of what is known of it."""
        ...

    async def trace(self, vault: Vault) -> Trail:
        """Find what the vault knows, in every column of every table."""
        ...

    async def redact(self, vault: Vault) -> int:
        """Take what the vault knows out of every row; returns how many were changed."""
        ...


class Files(Protocol):
    """All files that the bridge keeps; each method may take a while."""

    def find(self, vault: Vault) -> Sweeping:
        """List the files and folders that hold what the vault knows."""
        ...

    def clean(self, vault: Vault, held: Collection[Path]) -> Sequence[Path]:
        """Overwrite it there; returns what could not be changed."""
        ...


class Repositories(Protocol):
    """All repositories on this disk, by the folders of their objects."""

    async def purge(
        self, folders: Collection[Path], clones: Mapping[Path, Clone], vault: Vault
    ) -> Sequence[Path]:
        """Delete what holds a secret and is not needed; returns the repositories that need it."""
        ...

    def is_mirror(self, repository: Path) -> bool:
        """Tell whether a repository only copies what a remote has."""
        ...
