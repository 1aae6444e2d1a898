"""Stores the sub-agents of agents: the tree of each turn, with the state of each of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from app.model.subagents import Subagent, SubagentState, SubagentUpdate
from app.store.commits.subagents import settle_subagents, write_subagent
from app.store.database import Store, write
from app.store.tables import SUBAGENT_RUNS, subagent
from app.store.values import read_row


class SubagentStore(Store):
    """The sub-agent port."""

    @write
    def change(
        self, connection: Connection, session_id: int, turn_id: int | None, change: SubagentUpdate
    ) -> Subagent:
        """Store what changed about a sub-agent; a new one belongs to the turn, or the last one."""
        return write_subagent(connection, session_id, turn_id, change, self._now())

    @write
    def settle(self, connection: Connection, session_id: int, state: SubagentState) -> bool:
        """End the running sub-agents of a session; tells whether there were any."""
        mine = subagent.c.session == session_id
        return bool(settle_subagents(connection, mine, state, self._now()))

    async def of_turn(self, turn_id: int) -> Sequence[Subagent]:
        """List the sub-agents that a turn started, oldest first."""
        query = select(subagent).where(subagent.c.turn == turn_id).order_by(subagent.c.id)
        return [read_row(Subagent, row) for row in await self._database.all(query)]

    async def of_session(self, session_id: int, *, running: bool) -> Sequence[Subagent]:
        """List the sub-agents of a session, oldest first; only those that are running, or all."""
        query = select(subagent).where(subagent.c.session == session_id).order_by(subagent.c.id)
        rows = await self._database.all(query.where(SUBAGENT_RUNS) if running else query)
        return [read_row(Subagent, row) for row in rows]

    async def subagent(self, number: int) -> Subagent | None:
        """Read one sub-agent."""
        rows = await self._database.all(select(subagent).where(subagent.c.id == number))
        return read_row(Subagent, rows[0]) if rows else None
