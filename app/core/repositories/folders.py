"""Keeps the folders of sessions: makes them, holds them for a turn, and removes unused ones.

Clones and homes that sessions no longer use are removed when the disk needs room, unless they hold
unshipped work.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path, PurePath

from app.agents.agent import Agent
from app.children.homes import give
from app.children.limits import DiskSpace
from app.clock import Clock
from app.core.repositories.clones import Clones
from app.descent import discard
from app.errors import DiskNearlyFull, RepositoryError
from app.model import wording
from app.model.types import File, Session, SessionState
from app.model.workspaces import Checkout, attachment_folder, folder_name, outgoing
from app.store.sessions import SessionStore

logger = logging.getLogger(__name__)

WATCH_SECONDS = 60.0
"""Between two looks at the disk."""
IDLE_SECONDS = 3600.0
"""How long a session must be unused before its clone is removed to make room."""
WARNING = 2
"""People are warned below so many times of what must stay free, unless a setting says otherwise."""


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
        give(path, found.isolation.user if found and found.isolation else None)


class UnusedWorkspaces:
    """The workspaces of sessions that are not at work."""

    def __init__(
        self,
        folders: Folders,
        clones: Clones,
        sessions: SessionStore,
        *,
        is_open: Callable[[int], bool],
        alone: Callable[[int], asyncio.Lock],
    ) -> None:
        """Remove them; `is_open` tells whether a session works in its workspace now.

        `alone` keeps a workspace from being opened meanwhile.
        """
        self._folders = folders
        self._clones = clones
        self._sessions = sessions
        self._is_open = is_open
        self._alone = alone

    async def reap(self, *, before: float) -> Sequence[str]:
        """Remove clones and homes unused since a time; returns which were kept, and why.

        The home of a clone that is kept is kept as well.
        """
        kept: list[str] = []
        for record in await self._clones.all():
            session = self._find_idle(record.session, before)
            if session is None or not self._clones.is_ours(record):
                continue
            try:
                kept.append(await self._reap(session, record, before))
            except RepositoryError as error:
                logger.warning("could not inspect the clone of %s: %s", session.key, error)
        await self._reap_homes(before)
        return list(filter(None, kept))

    async def shed(self, before: float) -> int:
        """Remove clones unused since a time that can be made again; returns how many."""
        gone = 0
        for record in await self._clones.all():
            session = self._find_idle(record.session, before)
            if session is None or not self._clones.is_ours(record):
                continue
            try:
                if await self._clones.unshipped(session, record):
                    continue
                gone += await self._remove_unused(session, record, before)
            except RepositoryError as error:
                logger.warning("could not inspect the clone of %s: %s", session.key, error)
        return gone

    async def _reap_homes(self, before: float) -> None:
        cloned = {record.session for record in await self._clones.all()}
        for session_id, home in (await asyncio.to_thread(self._folders.homes)).items():
            async with self._alone(session_id):
                if session_id not in cloned and self._find_idle(session_id, before) is not None:
                    await asyncio.to_thread(discard, home)

    async def _reap(self, session: Session, record: Checkout, before: float) -> str:
        """Remove a clone, unless it holds unshipped work; then tell that once."""
        if held := await self._clones.unshipped(session, record):
            return await self._clones.keep(session, record, held)
        await self._remove_unused(session, record, before)
        return ""

    async def _remove_unused(self, session: Session, record: Checkout, before: float) -> bool:
        """Remove a clone, unless its session was used again meanwhile."""
        async with self._alone(session.id):
            if self._find_idle(session.id, before) is None:
                return False
            await self._clones.remove(session, record)
        return True

    def _find_idle(self, session_id: int, before: float) -> Session | None:
        """Read a session unless it is at work or was used since a time."""
        session = self._sessions.session(session_id)
        if session is None or self._is_open(session_id):
            return None
        is_unused = session.state is SessionState.REMOVED or session.updated_at < before
        return session if is_unused else None


class Hold:
    """One turn's hold on its folder; without a lock there is nothing to hold."""

    def __init__(self, lock: asyncio.Lock | None = None) -> None:
        self._lock = lock
        self._held = False

    async def take(
        self, meanwhile: Callable[[], AbstractAsyncContextManager[None]] | None = None
    ) -> None:
        """Wait for the folder; `meanwhile` releases what its holder may need during the wait."""
        if self._lock is None or self._held:
            return
        if self._lock.locked() and meanwhile is not None:
            async with meanwhile():
                await self._acquire(self._lock)
        else:
            await self._acquire(self._lock)

    def leave(self) -> None:
        """Give the folder back, if it is held."""
        if self._lock is not None and self._held:
            self._held = False
            self._lock.release()

    async def _acquire(self, lock: asyncio.Lock) -> None:
        await lock.acquire()
        self._held = True


class DiskRoom:
    """The room on one disk."""

    def __init__(
        self,
        disk: DiskSpace,
        clock: Clock,
        shed: Callable[[float], Awaitable[int]],
        *,
        warn_bytes: int | None = None,
    ) -> None:
        """Watch a disk; `shed` removes clones unused since a time that can be made again."""
        self.disk = disk
        self._clock = clock
        self._shed = shed
        self._warn_bytes = warn_bytes
        self._shedding = asyncio.Lock()
        self._looked_at = -WATCH_SECONDS
        self.trouble = ""
        """What is wrong with the disk, for people; empty if nothing is."""

    async def check(self) -> None:
        """Check that a turn may begin; if there is too little room, make some.

        Raises:
            DiskNearlyFull: that did not help.
        """
        try:
            await self.disk.check_room()
        except DiskNearlyFull:
            await self._make_room()
            await self.disk.check_room()

    async def watch(self) -> None:
        """Look at the disk now and then, for as long as the bridge runs."""
        while True:
            try:
                await self._look()
            except Exception:
                logger.exception("cannot look after the disk")
            await self._clock.sleep(WATCH_SECONDS)

    async def _look(self) -> None:
        free, least, warn = await asyncio.to_thread(self._measure)
        if free < warn:
            await self._make_room()
            free, least, warn = await asyncio.to_thread(self._measure)
        words = (
            wording.DISK_LOW.format(free=free // 2**20, least=least // 2**20) if free < warn else ""
        )
        if bool(words) != bool(self.trouble):
            logger.warning("%s", words or "the disk has room again")
        self.trouble = words

    def _measure(self) -> tuple[int, int, int]:
        least = self.disk.watermark()
        warn = WARNING * least if self._warn_bytes is None else max(self._warn_bytes, least)
        return self.disk.free(), least, warn

    async def _make_room(self) -> None:
        """Remove clones that can be made again, at most once a minute."""
        async with self._shedding:
            if self._clock.monotonic() < self._looked_at + WATCH_SECONDS:
                return
            self._looked_at = self._clock.monotonic()
            gone = await self._shed(self._clock.now() - IDLE_SECONDS)
            if gone:
                logger.warning("removed %d unused clones to make room", gone)


def is_folder_below(root: Path, name: str) -> bool:
    """Tell whether a name is that of a folder below another one, wherever links lead."""
    relative = PurePath(name)
    if relative.is_absolute() or ".." in relative.parts or not name.isprintable():
        return False
    # Unlike those of pathlib, these raise nothing for a circle of links or a name too long.
    real = os.path.realpath(root / relative)
    return PurePath(real).is_relative_to(os.path.realpath(root)) and os.path.isdir(real)  # noqa: PTH112
