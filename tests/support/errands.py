"""Makes turns errands: what the turn of one thread asked the agent of another one."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from app.core.types import TurnRef
from app.store.stores import Stores
from app.store.tables import delegation, session
from app.store.tree import Tree


async def delegate(
    stores: Stores, caller: TurnRef, errand: TurnRef, task: str, *, root: TurnRef | None = None
) -> int:
    """Make a turn the errand of another one; returns the number of the delegation."""
    tree = stores.tree
    assert isinstance(tree, Tree)
    begun = root or caller

    def write(connection: Connection) -> int:
        rows = connection.execute(select(session)).all()
        known = {row.id: row for row in rows}
        row = {
            "kind": "message",
            "agent": known[errand.session].agent,
            "caller_session": caller.session,
            "caller_turn": caller.turn,
            "session": errand.session,
            "turn": errand.turn,
            "root_place": known[begun.session].place,
            "root_session": begun.session,
            "root_turn": begun.turn,
            "depth": 1 if root is None else 2,
            "task": task,
            "person_id": "ada",
            "person_name": "Ada",
            "created_at": 1.0,
        }
        made = connection.execute(insert(delegation).returning(delegation.c.id), row)
        return int(made.scalar_one())

    return await tree._database.writer.run(write)
