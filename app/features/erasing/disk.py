"""Cleans the disk of one machine of a text: deletes what can be made again, overwrites the rest.

A clone with work that is nowhere else is named, and deleted only if the operator wants that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path

from app.agents.isolation import homes_root, workspaces_root
from app.children.kept_files import FoundFiles, KeptFiles
from app.core.runtime import Runtime
from app.descent import remove
from app.errors import GitFailed, RepositoryError
from app.features.erasing.model import Erased, Left, Stays, list_left
from app.model.types import Session
from app.model.workspaces import Checkout
from app.repos import wording as wording
from app.vault import Vault

logger = logging.getLogger(__name__)


class Disk:
    """What one machine keeps, and all machines share."""

    def __init__(
        self,
        runtime: Runtime,
        files: KeptFiles,
        stop: Callable[[Collection[int]], Awaitable[None]],
    ) -> None:
        """Clean; `stop` ends the agents of sessions."""
        configuration = runtime.configuration
        self._files = files
        self._repositories = runtime.search
        self._clones = runtime.clones
        self._sessions = runtime.stores.sessions
        self._stop = stop
        # Only of workspaces are there folders whose content is nowhere else: all but clones.
        self._workspaces = workspaces_root(configuration)
        self._gates = configuration.data_dir / "gates"
        self._homes = homes_root(configuration)
        self._mirrors = configuration.shared_dir / "mirrors"
        # What earlier releases saved of sessions.
        self._saved = configuration.shared_dir / "kept"

    async def find(self, vault: Vault, *, shared: bool) -> FoundFiles:
        """Find what holds the text: plain files, and repositories by their folders."""
        found = await asyncio.to_thread(self._files.find, vault, shared=shared)
        for repository in found.repositories:
            try:
                if await self._repositories.holds(repository, vault):
                    found.held.append(repository)
            except (GitFailed, OSError) as error:
                logger.warning("cannot look into %s: %s", repository, error)
                found.unread.append(repository)
        return found

    def find_sessions(self, found: FoundFiles) -> set[int]:
        """Tell in whose folders the text is: their names begin with the session's number."""
        parts = _parts(found.held, self._workspaces, self._gates, self._homes)
        numbers = (each.name.partition("-")[0] for each in parts)
        return {int(number) for number in numbers if number.isdecimal()}

    async def clean(self, vault: Vault, found: FoundFiles, *, discard: bool) -> Erased:
        """Delete what can be made again, and overwrite the text in other files."""
        left = list[Left]()
        clones = await self._find_clones()
        gone, kept = await self._delete_clones(clones, found.held, left, discard=discard)
        gone |= await self._delete_mirrors(clones, found.held, left)
        doomed = _parts(found.held, self._gates, self._homes, self._saved)
        rest = [each for each in found.held if not _is_below(each, kept | gone | doomed)]
        # Agents made the repositories that are left, so no remote is known to have them.
        own = {each for each in found.repositories if any(_is_below(path, [each]) for path in rest)}
        if discard:
            doomed |= own
        left += [Left(Stays.UNSHIPPED, str(each)) for each in sorted(own - doomed)]
        for folder in sorted(doomed):
            try:
                await asyncio.to_thread(remove, folder)
            except OSError:
                left.append(Left(Stays.FILE, str(folder)))
        plain = [each for each in rest if not _is_below(each, own)]
        unclean = await asyncio.to_thread(self._files.clean, vault, plain)
        unread = [each for each in found.unread if not _is_below(each, gone | doomed)]
        left += list_left(unclean, unread)
        stays = [each for each in found.held if _is_below(each, kept | (own - doomed))]
        files = len(found.held) - len(unclean) - len(stays)
        return Erased(files=files, clones=len(gone & clones.keys()), left=tuple(left))

    async def _find_clones(self) -> dict[Path, tuple[Session, Checkout]]:
        found = {}
        for record in await self._clones.all():
            session = self._sessions.session(record.session)
            if session is not None and self._clones.is_ours(record):
                found[self._clones.locate(session, record)] = (session, record)
        return found

    async def _delete_clones(
        self,
        clones: Mapping[Path, tuple[Session, Checkout]],
        held: Collection[Path],
        left: list[Left],
        *,
        discard: bool,
    ) -> tuple[set[Path], set[Path]]:
        """Delete the clones that hold the text; returns which, and which hold more than that."""
        gone, kept = set[Path](), set[Path]()
        for folder in clones.keys() & _parts(held, self._workspaces):
            session, record = clones[folder]
            try:
                work = "" if discard else await self._clones.unshipped(session, record)
            except RepositoryError as error:
                work = str(error)
            if work:
                name = f"{record.repository.name} {record.branch}".rstrip()
                left.append(Left(Stays.UNSHIPPED, f"{name} of {session.key}: {work}"))
                kept.add(folder)
            else:
                await self._clones.remove(session, record)
                told = wording.CLONE_PURGED.format(name=record.repository.name)
                await self._clones.note(session, told)
                gone.add(folder)
        return gone, kept

    async def _delete_mirrors(
        self,
        clones: Mapping[Path, tuple[Session, Checkout]],
        held: Collection[Path],
        left: list[Left],
    ) -> set[Path]:
        """Delete the mirrors that hold the text, with no agent in a clone that borrows from one."""
        mirrors = _parts(held, self._mirrors)
        path_of = self._repositories.mirror_of
        borrow = [each for each in clones.values() if path_of(each[1].repository) in mirrors]
        await self._stop({session.id for session, _ in borrow})
        for mirror in sorted(mirrors):
            left.append(Left(Stays.REMOTE, str(mirror)))
            try:
                await self._repositories.delete_mirror(mirror)
            except (RepositoryError, OSError) as error:
                logger.warning("cannot delete %s: %s", mirror, error)
                left.append(Left(Stays.FILE, str(mirror)))
        return mirrors


def _parts(held: Iterable[Path], *roots: Path) -> set[Path]:
    """Return the folders directly below some roots that hold the text."""
    return {
        root / each.relative_to(root).parts[0]
        for each in held
        for root in roots
        if each != root and each.is_relative_to(root)
    }


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(each) for each in folders)
