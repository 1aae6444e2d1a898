"""Writes what changed about sub-agents inside the caller's commit, and shows it on the page."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from app.model.subagents import Subagent, SubagentState, SubagentUpdate, apply
from app.model.types import Entry
from app.store.tables import SUBAGENT_RUNS, subagent, turn
from app.store.transcript import insert_entries
from app.store.values import read_row

SHOWN: Final = (
    *("id", "key", "parent", "task", "answer", "state"),
    *("can_stop", "cost", "currency", "began_at", "ended_at"),
)
"""What a row of the transcript tells, besides the title."""


def write_subagent(
    connection: Connection, session_id: int, turn_id: int | None, change: SubagentUpdate, now: float
) -> Subagent:
    """Store a change of a sub-agent; one that is not known yet belongs to this turn.

    Without a turn, it belongs to the session's last one.
    """
    mine = (subagent.c.session == session_id) & (subagent.c.key == change.key)
    row = connection.execute(select(subagent).where(mine)).first()
    known = None if row is None else read_row(Subagent, row)
    after = apply(known, change)
    values: dict[str, Any] = {
        **{each: getattr(after, each) for each in ("parent", "title", "task", "answer", "state")},
        **{each: getattr(after, each) for each in ("can_stop", "cost", "currency")},
        "ended_at": (after.ended_at or now) if after.is_over else None,
    }
    if known is None:
        last = select(func.max(turn.c.id)).where(turn.c.session == session_id).scalar_subquery()
        of = {"session": session_id, "turn": turn_id or last, "key": change.key}
        connection.execute(insert(subagent).values(**of, **values, began_at=now))
    else:
        connection.execute(update(subagent).where(mine).values(**values))
    stored = read_row(Subagent, connection.execute(select(subagent).where(mine)).one())
    if stored != known:
        insert_entries(connection, [_entry(stored)], now)
    return stored


def settle_subagents(
    connection: Connection, which: ColumnElement[bool], state: SubagentState, now: float
) -> list[int]:
    """End those of these sub-agents that are running; return their sessions."""
    rows = connection.execute(select(subagent).where(which, SUBAGENT_RUNS)).all()
    for row in rows:
        write_subagent(connection, row.session, None, SubagentUpdate(row.key, state=state), now)
    return sorted({row.session for row in rows})


def _entry(known: Subagent) -> Entry:
    data = {name: getattr(known, name) for name in SHOWN}
    return Entry("subagent", known.title, data=data, session=known.session, turn=known.turn)
