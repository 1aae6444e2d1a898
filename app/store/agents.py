"""Stores the agents: their ids and names, and the entries that people gave them, sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, Row, delete, select, update

from app.config import AgentRecord
from app.errors import ConfigurationError
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.tables import DELIVERY_IS_NEW, agent, delivery, post, schedule, session
from app.store.values import read_row

_UNSENT = ("new", "closing", "open")


class AgentStore(Store):
    """The records of agents."""

    def records(self) -> Sequence[AgentRecord]:
        """List every agent there is or was, in the order in which they came.

        Raises:
            ConfigurationError: an entry was sealed with another key.
        """
        wanted = select(agent).order_by(agent.c.created_at, agent.c.id)
        return [_record_of(row) for row in self._database.some(wanted)]

    @write
    def save(self, connection: Connection, *records: AgentRecord) -> None:
        """Store records in one commit, replacing those with the same ids."""
        self._save(connection, records)

    @write
    def succeed(self, connection: Connection, record: AgentRecord, to: str) -> None:
        """Bring an agent that was removed back in place of one without sessions, with its own."""
        connection.execute(delete(agent).where(agent.c.id == to))
        self._save(connection, [record])
        own = update(session).where(session.c.agent == record.id)
        connection.execute(own.values(closed=None))

    def open_sessions(self, agent_id: str) -> Sequence[int]:
        """List the sessions of an agent that were not removed."""
        there = select(session.c.id).where(session.c.agent == agent_id, session.c.closed.is_(None))
        return [row.id for row in self._database.some(there.order_by(session.c.id))]

    def has_work(self, agent_id: str) -> bool:
        """Tell whether anything still waits for an agent: a session, a delivery or a post."""
        waiting = select(delivery.c.seq).where(delivery.c.adapter.like(f"%:{agent_id}"))
        unsent = select(post.c.id).where(post.c.agent == agent_id, post.c.state.in_(_UNSENT))
        return bool(
            self.open_sessions(agent_id)
            or self._database.some(waiting.where(DELIVERY_IS_NEW).limit(1))
            or self._database.some(unsent.limit(1))
        )

    @write
    def settle(self, connection: Connection, agent_id: str, reason: str) -> None:
        """Fail what still waits for an agent that was removed: deliveries and unsent posts."""
        waiting = delivery.c.adapter.like(f"%:{agent_id}")
        connection.execute(
            update(delivery).where(waiting, DELIVERY_IS_NEW).values(state="failed", reason=reason)
        )
        connection.execute(
            update(post)
            .where(post.c.agent == agent_id, post.c.state.in_(_UNSENT))
            .values(state="failed", error=reason)
        )

    def _save(self, connection: Connection, records: Sequence[AgentRecord]) -> None:
        # A name that moves from one agent to another is free in between.
        held = [record.id for record in records]
        former = update(agent).where(agent.c.id.in_(held), agent.c.removed_at.is_(None))
        connection.execute(former.values(removed_at=0.0))
        for record in records:
            row = _row_of(record)
            if record.removed_at is not None:
                connection.execute(delete(schedule).where(schedule.c.agent == record.id))
            connection.execute(
                insert(agent)
                .values(**row, created_at=self._now())
                .on_conflict_do_update(index_elements=[agent.c.id], set_=row)
            )


def _record_of(row: Row[Any]) -> AgentRecord:
    return read_row(
        AgentRecord,
        row,
        entry=_open(row.name, row.entry),
        credentials=_open(row.name, row.credentials) or {},
        former=tuple(row.former),
        known_as=tuple(row.known_as),
        default=row.is_default,
    )


def _row_of(record: AgentRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "entry": None if record.entry is None else orjson.dumps(dict(record.entry)),
        "credentials": orjson.dumps({k: dict(v) for k, v in record.credentials.items()})
        if record.credentials
        else None,
        "former": list(record.former),
        "known_as": list(record.known_as),
        "title": record.title,
        "source": record.source,
        "isolation": record.isolation,
        "isolation_was": record.isolation_was,
        "is_default": record.default,
        "removed_at": record.removed_at,
    }


def _open(name: str, sealed: bytes | None) -> Mapping[str, Any] | None:
    if sealed is None:
        return None
    try:
        opened: Mapping[str, Any] = orjson.loads(sealed)
    except orjson.JSONDecodeError:
        raise ConfigurationError(
            "BRIDGE_SECRET_KEY",
            f"does not open the entry of agent {name!r}, which was stored with another key",
            "Set the earlier key.",
        ) from None
    return opened
