"""Says what a purge needs of folders and repositories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from app.model.erasure import Cleared, Sweeping
from app.model.workspaces import Clone
from app.vault import Vault
from app.vault.octets import Known


class Files(Protocol):
    """All files that the bridge keeps; each method may take a while."""

    def find(self, vault: Known) -> Sweeping:
        """List the files and folders that hold what the vault knows."""
        ...

    def clean(self, vault: Known, held: Collection[Path]) -> Sequence[Path]:
        """Overwrite it there; returns what could not be changed."""
        ...


class Repositories(Protocol):
    """All repositories on this disk, by the folders of their objects."""

    async def clear(
        self, folders: Collection[Path], clones: Mapping[Path, Clone], vault: Vault
    ) -> Cleared:
        """Delete what holds a secret and is not needed from clones; mirrors are only searched."""
        ...

    async def clear_mirrors(
        self, held: Mapping[Path, Collection[str]], needed: Collection[str]
    ) -> Sequence[Path]:
        """Delete objects from mirrors, unless clones need them.

        Returns the mirrors that still have some, or have them from a remote.
        """
        ...

    def is_mirror(self, repository: Path) -> bool:
        """Tell whether a repository only copies what a remote has."""
        ...
