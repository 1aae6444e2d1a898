"""Stores which folders of sessions are saved for other machines."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import bindparam, select

from app.model.folders import SavedFolder
from app.store.database import Database
from app.store.dialects import insert
from app.store.tables import saved_folder

_ONE = select(saved_folder).where(
    saved_folder.c.session == bindparam("of"), saved_folder.c.kind == bindparam("named")
)


class SavedFolderStore:
    """The port of saved folders on the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, session: int, kind: str) -> SavedFolder | None:
        """Read which state of a folder was saved last; None if none was."""
        row = self._database.one(_ONE, of=session, named=kind)
        return SavedFolder(row.session, row.kind, row.saved, row.machine) if row else None

    async def put(self, folder: SavedFolder) -> None:
        """Record which state of a folder was saved last, and where it is."""
        change = insert(saved_folder).on_conflict_do_update(
            index_elements=["session", "kind"],
            set_={"saved": folder.saved, "machine": folder.machine},
        )
        await self._database.writer.run(
            lambda connection: connection.execute(change, asdict(folder))
        )
