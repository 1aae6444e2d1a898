"""Stores deliveries as they arrived, and the outcome of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from app.model.conversations import EVERYTHING, ListFilter
from app.model.inbound import Delivery, DeliveryLine, DeliveryState
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.tables import DELIVERY_IS_NEW, delivery
from app.store.values import read_row

PENDING_AT_ONCE = 200
"""Deliveries read at once: enough to catch up after downtime, few enough to save memory."""

_ADD = (
    insert(delivery)
    .values(
        {
            column.name: bindparam(column.name)
            for column in (
                delivery.c.adapter,
                delivery.c.delivery_id,
                delivery.c.signature,
                delivery.c.headers,
                delivery.c.body,
                delivery.c.received_at,
                delivery.c.sent_at,
            )
        }
    )
    .on_conflict_do_nothing()
)

_PENDING = (
    select(delivery)
    .where(
        delivery.c.adapter == bindparam("adapter"),
        delivery.c.seq > bindparam("after"),
        DELIVERY_IS_NEW,
    )
    .order_by(delivery.c.seq)
    .limit(PENDING_AT_ONCE)
)
_OUTCOME = select(delivery.c.state).where(
    delivery.c.adapter == bindparam("adapter"), delivery.c.delivery_id == bindparam("of")
)
_SETTLE = (
    update(delivery)
    .where(delivery.c.seq == bindparam("of"))
    .values(state=bindparam("state"), reason=bindparam("reason"))
)


class DeliveryStore(Store):
    """The delivery port."""

    async def add(self, new: Delivery) -> None:
        """Store a delivery; one with a known id or signature changes nothing."""
        await self._database.writer.insert(_ADD, _row_of(new))

    async def outcome(self, adapter: str, delivery_id: str) -> DeliveryState | None:
        """Return what became of a delivery; None if it never arrived."""
        row = self._database.one(_OUTCOME, adapter=adapter, of=delivery_id)
        return None if row is None else row.state

    async def pending(self, adapter: str, after: int) -> Sequence[Delivery]:
        """List unsettled deliveries, in order of arrival."""
        rows = await self._database.all(_PENDING, adapter=adapter, after=after)
        return [_delivery_of(row) for row in rows]

    @write
    def settle(self, connection: Connection, seq: int, state: DeliveryState, reason: str) -> None:
        """Record the outcome of a delivery that led to no message."""
        settle(connection, seq, state, reason)

    async def kept(self, adapter: str, *, limit: int) -> Sequence[Delivery]:
        """List an adapter's stored deliveries, newest first."""
        query = select(delivery).where(delivery.c.adapter == adapter)
        rows = await self._database.all(query.order_by(delivery.c.seq.desc()).limit(limit))
        return [_delivery_of(row) for row in rows]

    async def recent(
        self, only: ListFilter = EVERYTHING, *, before: int | None, limit: int
    ) -> Sequence[DeliveryLine]:
        """List deliveries without their content, newest first."""
        shown = (delivery.c[name] for name in DeliveryLine.__slots__)
        query = select(*shown).order_by(delivery.c.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(delivery.c.seq < before)
        # The name of an adapter is that of its service and the id of its agent.
        if only.agent is not None:
            query = query.where(delivery.c.adapter.endswith(f":{only.agent}", autoescape=True))
        if only.service is not None:
            query = query.where(delivery.c.adapter.startswith(f"{only.service}:", autoescape=True))
        if only.state is not None:
            query = query.where(delivery.c.state == only.state)
        if only.since is not None:
            query = query.where(delivery.c.received_at >= only.since)
        rows = await self._database.all(query)
        return [read_row(DeliveryLine, row) for row in rows]


def insert_delivery(connection: Connection, new: Delivery) -> None:
    """Store a delivery inside the caller's commit; one that is known changes nothing."""
    connection.execute(_ADD, _row_of(new))


def settle(connection: Connection, seq: int, state: DeliveryState, reason: str) -> None:
    """Record a delivery's outcome inside the caller's commit."""
    connection.execute(_SETTLE, {"of": seq, "state": state, "reason": reason})


def _row_of(new: Delivery) -> dict[str, Any]:
    return {
        "adapter": new.adapter,
        "delivery_id": new.delivery_id,
        "signature": new.signature,
        "headers": new.headers,
        "body": new.body,
        "received_at": new.received_at,
        "sent_at": new.sent_at,
    }


def _delivery_of(row: Row[Any]) -> Delivery:
    return read_row(Delivery, row)
