"""Port for the folders of sessions that are saved for other machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SavedFolder:
    """One folder of a session as it was saved last."""

    session: int
    kind: str
    saved: str
    """The name of what was saved."""
    machine: str
    """The machine whose disk has it."""


class SavedFolderStore(Protocol):
    """The saved folders of sessions."""

    def find(self, session: int, kind: str) -> SavedFolder | None:
        """Read which state of a folder was saved last; None if none was."""
        ...

    async def put(self, folder: SavedFolder) -> None:
        """Record which state of a folder was saved last, and where it is."""
        ...
