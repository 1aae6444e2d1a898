"""Keeps what people see of work in progress: how much changed, and the state of its pull request.

Reading takes git and the network, so it happens in the background; pages show what was kept.
"""

from __future__ import annotations

import logging

from app.clock import Clock
from app.core.feed import Feed
from app.core.repositories.clones import Clones
from app.core.repositories.ports import Forge
from app.errors import BridgeError
from app.model.types import Session
from app.retry import persist
from app.store.checkouts import CheckoutStore
from app.store.sessions import SessionStore
from app.tasks import Tasks

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 60.0
"""How old a state is before an open page has it read again: webhooks report most changes."""


class WorkProgress:
    """Reads and keeps the state of sessions' work."""

    def __init__(
        self,
        sessions: SessionStore,
        records: CheckoutStore,
        clones: Clones,
        feed: Feed,
        clock: Clock,
        forge: Forge | None,
    ) -> None:
        self._sessions = sessions
        self._records = records
        self._clones = clones
        self._feed = feed
        self._clock = clock
        self._forge = forge
        self._tasks = Tasks("state of work")
        self._again: dict[int, bool] = {}
        """The sessions that are read just now, and whether to read them once more."""
        self._read_at: dict[int, float] = {}

    def look(self, session_id: int) -> None:
        """Read the state of a session's work soon."""
        if session_id in self._again:
            self._again[session_id] = True
        elif self._records.latest(session_id) is not None:
            self._again[session_id] = False
            self._tasks.start(self._look(session_id), name=f"session {session_id}")

    def look_if_old(self, session_id: int) -> None:
        """Read it for a page that was opened, unless it was read just now."""
        last = self._read_at.get(session_id)
        if last is None or self._clock.monotonic() - last >= AGAIN_SECONDS:
            self.look(session_id)

    async def close(self) -> None:
        """Stop reading."""
        await self._tasks.close()

    async def _look(self, session_id: int) -> None:
        try:
            while True:
                self._again[session_id] = False
                self._read_at[session_id] = self._clock.monotonic()
                session = self._sessions.session(session_id)
                if session is not None:
                    await self._read(session)
                if not self._again[session_id]:
                    return
        finally:
            del self._again[session_id]

    async def _read(self, session: Session) -> None:
        try:
            await self._clones.measure(session)
            await self._read_proposal(session)
        except BridgeError as error:
            logger.info("cannot read the state of %s's work: %s", session.key, error)
        self._feed.notify(session.id)

    async def _read_proposal(self, session: Session) -> None:
        record = self._records.latest(session.id)
        if self._forge is None or record is None or not record.link or record.outcome:
            return
        found = await self._forge.judged(record.repository, session.key.agent, record.branch)
        if found is not None:
            await persist(self._clock, self._records.judged, session.id, record.number, found)
