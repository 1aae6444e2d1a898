"""Stores what each day has cost: by person, place, repository and agent, and in total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, func, select, tuple_

from app.model.keys import AreaOf, PlaceKey
from app.store.database import Store
from app.store.dialects import insert
from app.store.tables import checkout, delegation, heard, message, place, session, spending, turn

Share = Literal["person", "place", "repository", "agent", "day"]
"""Whom a cost counts for; `day` is all of them together."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What one of them has spent on a day."""

    day: str
    share: Share
    name: str
    usd: float


_root = place.alias()
_CLONE = (
    select(checkout.c.name)
    .where(checkout.c.session == session.c.id)
    .order_by(checkout.c.number.desc())
    .limit(1)
    .scalar_subquery()
)
_TURN = (
    select(
        session.c.agent,
        func.coalesce(_root.c.service, place.c.service).label("service"),
        func.coalesce(_root.c.name, place.c.name).label("name"),
        func.coalesce(_CLONE, place.c.repository, "").label("repository"),
        delegation.c.person_id,
    )
    .select_from(turn)
    .join(session, session.c.id == turn.c.session)
    .join(place, place.c.id == session.c.place)
    .outerjoin(delegation, delegation.c.turn == turn.c.id)
    .outerjoin(_root, _root.c.id == delegation.c.root_place)
)
_SPEAKER = (
    select(message.c.speaker_id)
    .join(heard, heard.c.message == message.c.id)
    .where(message.c.speaker_kind == "person")
    .order_by(message.c.id)
    .limit(1)
)


class SpendingStore(Store):
    """The spending port."""

    async def of_turn(self, turn: int, day: str) -> Mapping[Share, float]:
        """Tell what those whom a turn counts for have spent on a day."""
        return await self._database.read(
            lambda connection: _read(connection, turn, day, self._area_of)
        )

    async def list(self, since: str) -> Sequence[Spending]:
        """List what was spent from a day on: the last day first, of each day the most."""
        query = select(spending).where(spending.c.day >= since)
        rows = await self._database.all(
            query.order_by(spending.c.day.desc(), spending.c.usd.desc(), spending.c.share)
        )
        return [Spending(row.day, row.share, row.name, row.usd) for row in rows]


def add_spending(
    connection: Connection,
    turn_id: int,
    day: str,
    usd: float,
    area_of: AreaOf,
    *,
    shared: float,
) -> None:
    """Count a cost for the agent of a turn, `shared` of it for others, in the caller's commit."""
    for share, name in _accounts(connection, turn_id, area_of).items():
        counted = usd if share == "agent" else shared
        new = insert(spending).values(day=day, share=share, name=name, usd=counted)
        more = {"usd": spending.c.usd + counted}
        keys = [spending.c.day, spending.c.share, spending.c.name]
        connection.execute(new.on_conflict_do_update(index_elements=keys, set_=more))


def _read(connection: Connection, turn_id: int, day: str, area_of: AreaOf) -> Mapping[Share, float]:
    accounts = _accounts(connection, turn_id, area_of)
    rows = connection.execute(
        select(spending.c.share, spending.c.usd).where(
            spending.c.day == day,
            tuple_(spending.c.share, spending.c.name).in_(accounts.items()),
        )
    )
    return {row.share: row.usd for row in rows}


def _accounts(connection: Connection, turn_id: int, area_of: AreaOf) -> dict[Share, str]:
    """Tell whom a turn counts for: what an agent asked for counts for the person behind it."""
    row = connection.execute(_TURN.where(turn.c.id == turn_id)).one()
    where = PlaceKey(row.service, row.name)
    found: dict[Share, str] = {"agent": row.agent, "place": str(area_of(where) or where), "day": ""}
    if row.repository:
        found["repository"] = row.repository
    person = row.person_id
    if person is None:
        person = connection.execute(_SPEAKER.where(heard.c.turn == turn_id)).scalar()
    if person is not None:
        found["person"] = f"{row.service}:{person}"
    return found
