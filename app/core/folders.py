"""Empty folders: one for each session, beside it one for attachments and one for what goes out.

What people attach is laid beside the workspace, never into it, and so is what they shall get.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from app.core.types import File, Session


class Folders:
    """Empty folders, one per session; beside each one for attachments, one for what goes out."""

    def __init__(self, root: Path, uploads: Path) -> None:
        self.root = root
        self._uploads = uploads

    async def open(self, session: Session) -> Path:
        """Make the folder of a session ready.

        Raises:
            OSError: it cannot be made.
        """
        folder = self.folder(session)
        for needed in (folder, beside(folder), outgoing(folder)):
            await asyncio.to_thread(needed.mkdir, mode=0o700, parents=True, exist_ok=True)
        return folder

    async def bring(self, session: Session, files: Sequence[File]) -> Sequence[Path]:
        """Lay files beside a session's workspace and tell where they are.

        Raises:
            OSError: one of them cannot be read or written.
        """
        folder = beside(await self.open(session))
        return [await asyncio.to_thread(self._copy, file, folder) for file in files]

    def folder(self, session: Session) -> Path:
        """Tell which folder is a session's own."""
        return self.root / f"{session.id}-{session.key.agent}"

    def _copy(self, file: File, folder: Path) -> Path:
        source = (self._uploads / file.url).resolve()
        if not source.is_relative_to(self._uploads.resolve()):
            raise FileNotFoundError(file.name)
        target = folder / source.parent.name / source.name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(source, target)
        return target


def beside(workspace: Path) -> Path:
    """Name the folder for attachments beside a workspace."""
    return workspace.with_name(f"{workspace.name}.files")


def outgoing(workspace: Path) -> Path:
    """Name the folder for what people shall get beside a workspace."""
    return workspace.with_name(f"{workspace.name}.out")
