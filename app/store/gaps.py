"""Stores how far conversations were compared with their platforms, and when events did not arrive.

Everything that was sent before a position, and that concerns an agent, is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, func, select, update

from app.model.inbound import Gap, GapCause
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.tables import delivery, gap, position
from app.store.values import read_row

_MOVE = insert(position)
_KEEP = _MOVE.on_conflict_do_update(
    index_elements=[position.c.adapter, position.c.source], set_={"at": _MOVE.excluded.at}
)


class GapStore(Store):
    """Positions and gaps of all adapters."""

    async def positions(self, adapter: str) -> dict[str, float]:
        """Return how far each source of an adapter was compared, by its name."""
        query = select(position.c.source, position.c.at).where(position.c.adapter == adapter)
        return {row.source: row.at for row in await self._database.all(query)}

    @write
    def move(self, connection: Connection, adapter: str, positions: Mapping[str, float]) -> None:
        """Note how far sources of an adapter were compared."""
        rows = [{"adapter": adapter, "source": name, "at": at} for name, at in positions.items()]
        if rows:
            connection.execute(_KEEP, rows)

    async def last_delivery(self, adapter: str) -> float | None:
        """Return when an adapter last received something; None if it never did."""
        query = select(func.max(delivery.c.received_at)).where(delivery.c.adapter == adapter)
        [row] = await self._database.all(query)
        return None if row[0] is None else float(row[0])

    @write
    def add(self, connection: Connection, new: Gap) -> None:
        """Note a time in which events of an adapter may not have arrived."""
        row = {name: getattr(new, name) for name in Gap.__slots__}
        connection.execute(insert(gap).values(row))

    async def since(self, at: float, adapter: str | None = None) -> Sequence[Gap]:
        """List the gaps that ended since a time, oldest first: of one adapter, or of all."""
        query = select(gap).where(gap.c.ended >= at).order_by(gap.c.id)
        if adapter is not None:
            query = query.where(gap.c.adapter == adapter)
        return [read_row(Gap, row) for row in await self._database.all(query)]

    async def cause(self, adapter: str, at: float) -> GapCause | None:
        """Tell why an event of a time did not arrive; None if everything looked well then."""
        found = [each for each in await self.since(at, adapter) if each.began <= at]
        return found[0].cause if found else None


def forget_distance(connection: Connection, now: float) -> None:
    """Begin to compare anew, inside the caller's commit: what came before now is not looked for."""
    connection.execute(update(position).values(at=now))
