"""Keeps a workspace for those who use it: one turn at a time, and nobody removes it meanwhile.

Clones and homes that sessions no longer use are removed, unless they hold unshipped work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from app.core.folders import Folders
from app.core.repositories.clones import Clones
from app.descent import discard
from app.errors import RepositoryError
from app.model.types import Session, SessionState
from app.model.workspaces import Checkout
from app.store.sessions import SessionStore

logger = logging.getLogger(__name__)


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
        if session is None or self._is_open(session_id) or _in_use(session, before):
            return None
        return session


def _in_use(session: Session, before: float) -> bool:
    return session.state is not SessionState.REMOVED and session.updated_at >= before


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
