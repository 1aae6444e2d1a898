"""Saves folders that a session has on one machine, and brings them to another one.

As with the states of clones, what is stored gets a new name before its row says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.clock import Clock
from app.errors import BridgeError
from app.model.folders import SavedFolder, folder_name
from app.model.ports import Shelf
from app.model.types import Session
from app.retry import persist
from app.store.folders import SavedFolderStore

logger = logging.getLogger(__name__)


class FolderKind(Protocol):
    """The folders of one kind that sessions have; every method works on the disk."""

    def name_content(self, session: Session) -> str:
        """Return a name that changes with the files; empty if there are none.

        Raises:
            OSError: they cannot be read, or are too many.
        """
        ...

    def pack(self, session: Session, into: Path) -> None:
        """Pack the files.

        Raises:
            OSError: they cannot be read or written.
        """
        ...

    def unpack(self, session: Session, file: Path) -> None:
        """Put packed files in place of what is there.

        Raises:
            OSError: they cannot be read or written.
        """
        ...


@dataclass(frozen=True, slots=True)
class SavedFolders:
    """The saved folders of sessions, seen from one machine."""

    kinds: Mapping[str, FolderKind]
    shelf: Shelf
    records: SavedFolderStore
    scratch: Path
    """Where files are packed and unpacked."""
    clock: Clock
    machine: str

    async def bring(self, session: Session) -> None:
        """Bring the folders of a session here, if another machine had them last.

        Raises:
            OSError: one cannot be brought.
        """
        for kind, files in self.kinds.items():
            record = self.records.find(session.id, kind)
            if record is not None and record.machine != self.machine:
                await self._bring(session, record, files)

    async def save(self, session: Session) -> None:
        """Save what changed in the folders of a session; a failure is logged."""
        for kind, files in self.kinds.items():
            try:
                await self._save(session, kind, files)
            except (BridgeError, OSError) as error:
                logger.warning("the %s of %s is not saved: %s", kind, session.key, error)

    async def _bring(self, session: Session, record: SavedFolder, files: FolderKind) -> None:
        file = await self._scratch_file(session, record.kind)
        try:
            if await self.shelf.get(_place(session, record.kind, record.saved), file):
                await asyncio.to_thread(files.unpack, session, file)
            else:
                logger.warning("the saved %s of %s is gone", record.kind, session.key)
        finally:
            await asyncio.to_thread(file.unlink, missing_ok=True)
        here = SavedFolder(session.id, record.kind, record.saved, self.machine)
        await persist(self.clock, self.records.put, here)

    async def _save(self, session: Session, kind: str, files: FolderKind) -> None:
        name = await asyncio.to_thread(files.name_content, session)
        record = self.records.find(session.id, kind)
        is_elsewhere = record is not None and record.machine != self.machine
        if not name or is_elsewhere:
            return
        if record is not None and record.saved == name and await self._has(session, record):
            return
        file = await self._scratch_file(session, kind)
        try:
            await asyncio.to_thread(files.pack, session, file)
            await self.shelf.put(_place(session, kind, name), file)
        finally:
            await asyncio.to_thread(file.unlink, missing_ok=True)
        await self.records.put(SavedFolder(session.id, kind, name, self.machine))
        for each in await self.shelf.names(_folder(session, kind)):
            if each != _place(session, kind, name):
                await self.shelf.remove(each)

    async def _has(self, session: Session, record: SavedFolder) -> bool:
        """Tell whether what was saved is still there: a purge removes it."""
        place = _place(session, record.kind, record.saved)
        return place in await self.shelf.names(_folder(session, record.kind))

    async def _scratch_file(self, session: Session, kind: str) -> Path:
        await asyncio.to_thread(self.scratch.mkdir, mode=0o700, parents=True, exist_ok=True)
        return self.scratch / f"{folder_name(session)}.{kind}"


def _folder(session: Session, kind: str) -> str:
    return f"{folder_name(session)}.{kind}"


def _place(session: Session, kind: str, name: str) -> str:
    return f"{_folder(session, kind)}/{name}.tar.gz"
