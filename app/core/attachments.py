"""Sees to it that a file is there before it is laid beside a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.core.ports import Adapter, FileSource, Workspaces
from app.core.types import File, Session


class Attachments:
    """Workspaces whose files may still have to be fetched from where they were attached."""

    def __init__(self, workspaces: Workspaces, adapters: Mapping[str, Adapter]) -> None:
        self._workspaces = workspaces
        self._adapters = adapters

    async def open(self, session: Session) -> Path:
        """Make the folder of a session ready."""
        return await self._workspaces.open(session)

    async def bring(self, session: Session, files: Sequence[File]) -> Sequence[Path]:
        """Fetch files, lay them beside a session's workspace and tell where they are.

        Raises:
            OSError: one of them cannot be read or written.
        """
        source = self._adapters.get(session.key.adapter)
        if isinstance(source, FileSource):
            files = [await source.fetch(file) for file in files]
        return await self._workspaces.bring(session, files)
