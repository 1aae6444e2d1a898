"""Stores what the operator paused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, delete, insert, select

from app.core.suspension import Pending, Reason, Suspension
from app.core.types import TurnRef, TurnState
from app.store.commits.suspending import SUSPENDED, tell_suspended
from app.store.database import Database
from app.store.pending import read_pending
from app.store.tables import suspension, turn

_WAITING = select(turn.c.session, turn.c.id).where(
    turn.c.state == TurnState.QUEUED, turn.c.held.is_(False)
)
_SCOPES = select(suspension).order_by(suspension.c.scope)


class SuspensionRows:
    """The port for what is paused."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    def all(self) -> Sequence[Suspension]:
        """List what is paused, in the order of scopes."""
        rows = self._database.some(_SCOPES)
        return [Suspension(row.scope, row.reason, row.since) for row in rows]

    async def add(self, scope: str, reason: Reason) -> Sequence[int]:
        """Pause a scope, and tell those who wait there, once; return the posts to send."""

        def write(connection: Connection) -> list[int]:
            now = self._now()
            same = select(suspension).where(suspension.c.scope == scope)
            if connection.execute(same).first() is not None:
                return []
            new = {"scope": scope, "reason": reason, "since": now}
            connection.execute(insert(suspension), new)
            waiting = connection.execute(_WAITING.where(SUSPENDED)).all()
            return tell_suspended(connection, [row.id for row in waiting], now)

        return await self._database.writer.run(write)

    async def remove(self, scope: str) -> Sequence[TurnRef] | None:
        """Resume a scope; return the turns that can begin, None if it was not paused."""

        def write(connection: Connection) -> list[TurnRef] | None:
            gone = delete(suspension).where(suspension.c.scope == scope)
            if not connection.execute(gone).rowcount:
                return None
            free = connection.execute(_WAITING.where(~SUSPENDED).order_by(turn.c.id)).all()
            return [TurnRef(row.session, row.id) for row in free]

        return await self._database.writer.run(write)

    async def pending(self) -> Pending:
        """Read what the bridge goes on with once nothing is paused."""
        return await read_pending(self._database, self._now())
