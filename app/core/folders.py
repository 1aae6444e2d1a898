"""Creates the folders of a session: workspace, attachments, and files for people.

Attachments and files for people are next to the workspace, never in it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from app.agents.agent import Agent
from app.children.homes import give
from app.model.types import File, Session
from app.model.workspaces import attachment_folder, folder_name, outgoing


class Folders:
    """Empty folders, one per session, each with one for attachments and one for outgoing files."""

    def __init__(
        self,
        root: Path,
        uploads: Path,
        homes: Path,
        agents: Mapping[str, Agent] | None = None,
    ) -> None:
        """Create them below `root`; the agents of sessions have their homes below `homes`.

        An agent that has a user of its own owns its folders.
        """
        self.root = root
        self._uploads = uploads
        self._homes = homes
        self._agents = agents or {}

    async def open(self, session: Session) -> Path:
        """Prepare the folder of a session.

        Raises:
            OSError: it cannot be made.
        """
        folder = self.folder(session)
        for needed in (folder, attachment_folder(folder), outgoing(folder)):
            await asyncio.to_thread(self._make, needed, session.key.agent)
        return folder

    async def bring(self, session: Session, files: Sequence[File]) -> Sequence[Path]:
        """Copy files next to a session's workspace and return their paths.

        Raises:
            OSError: one of them cannot be read or written.
        """
        folder = attachment_folder(await self.open(session))
        agent = session.key.agent
        return [await asyncio.to_thread(self._copy, file, folder, agent) for file in files]

    def folder(self, session: Session) -> Path:
        """Return the folder of a session."""
        return self.root / folder_name(session)

    def home(self, session: Session) -> Path:
        """Return the home of a session's agent, if it has its own."""
        return self._homes / folder_name(session)

    def mark_beginning(self, session: Session) -> None:
        """Remember that a session begins to work in a person's folder now, unless it did before."""
        with suppress(FileExistsError):
            self._beginning(session).touch(exist_ok=False)

    def began(self, session: Session) -> int:
        """Return when a session began to work in a person's folder, in nanoseconds.

        By the clock of the disk, with whose times it is compared.
        """
        try:
            return self._beginning(session).stat().st_mtime_ns
        except FileNotFoundError:
            return time.time_ns()

    def _beginning(self, session: Session) -> Path:
        # Its agent can read this folder and not write it.
        return attachment_folder(self.folder(session)) / ".began"

    def homes(self) -> dict[int, Path]:
        """Find the existing homes, by the ids of their sessions."""
        found = self._homes.iterdir() if self._homes.is_dir() else ()
        numbered = ((home.name.partition("-")[0], home) for home in found)
        return {int(number): home for number, home in numbered if number.isdecimal()}

    def _make(self, folder: Path, agent: str) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._give(folder, agent)

    def _copy(self, file: File, folder: Path, agent: str) -> Path:
        source = (self._uploads / file.url).resolve()
        if not source.is_relative_to(self._uploads.resolve()):
            raise FileNotFoundError(file.name)
        target = folder / source.parent.name / source.name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(source, target)
        self._give(target.parent, agent)
        self._give(target, agent)
        return target

    def _give(self, path: Path, agent: str) -> None:
        found = self._agents.get(agent)
        give(path, found.shelter.user if found and found.shelter else None)


def is_folder_below(root: Path, name: str) -> bool:
    """Tell whether a name is that of a folder below another one, wherever links lead."""
    relative = PurePath(name)
    if relative.is_absolute() or ".." in relative.parts or not name.isprintable():
        return False
    # Unlike those of pathlib, these raise nothing for a circle of links or a name too long.
    real = os.path.realpath(root / relative)
    return PurePath(real).is_relative_to(os.path.realpath(root)) and os.path.isdir(real)  # noqa: PTH112
