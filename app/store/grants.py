"""Stores grants: what people let an agent do in a conversation without being asked each time.

A grant is written with the answer that gave it, and compared by its digest alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    case,
    insert,
    select,
    update,
)

from app.errors import NotFound
from app.model.asks import GRANT_SECONDS, Grant, WantedGrants
from app.model.keys import PlaceKey
from app.store.database import Store, write
from app.store.tables import ask, grant, is_place, place, session
from app.store.values import read_row


class GrantStore(Store):
    """The grant port."""

    def find(self, session_id: int, digests: Sequence[str]) -> Grant | None:
        """Find a grant that holds now for one of these digests."""
        now = self._now()
        query = _select(now).where(grant.c.session == session_id, grant.c.digest.in_(digests))
        row = self._database.one(query.where(_state(now) == "active").limit(1))
        return None if row is None else _grant_of(row)

    async def list(self, wanted: WantedGrants, *, after: int, limit: int) -> Sequence[Grant]:
        """List grants, oldest first."""
        now = self._now()
        query = _select(now).where(grant.c.id > after).order_by(grant.c.id).limit(limit)
        if wanted.agent is not None:
            query = query.where(session.c.agent == wanted.agent)
        if wanted.session is not None:
            query = query.where(grant.c.session == wanted.session)
        if wanted.place is not None:
            query = query.where(_is_shown_in(wanted.place))
        if wanted.state is not None:
            query = query.where(_state(now) == wanted.state)
        return [_grant_of(row) for row in await self._database.all(query)]

    @write
    def end(self, connection: Connection, grant_id: int, by: str) -> Grant | None:
        """Take a grant back; None if it does not hold any more."""
        now = self._now()
        one = _select(now).where(grant.c.id == grant_id)
        row = connection.execute(one).first()
        if row is None:
            raise NotFound("grant", grant_id)
        if row.state != "active":
            return None
        change = {"ended_at": now, "ended_by": by}
        connection.execute(update(grant).where(grant.c.id == grant_id).values(change))
        return _grant_of(connection.execute(one).one())


def write_grant(
    connection: Connection, row: Row[Any], answer: str, by: str, now: float, *, speaker: str
) -> None:
    """Store what the answer to an ask grants, if anything that is not granted already."""
    scope = (row.scopes or {}).get(answer)
    if scope is None:
        return
    known = _select(now).where(
        grant.c.session == row.session, grant.c.digest == scope["digest"], _state(now) == "active"
    )
    if connection.execute(known).first() is not None:
        return
    connection.execute(
        insert(grant).values(
            session=row.session,
            generation=row.generation,
            **scope,
            granted_by=by,
            speaker=speaker,
            ask=row.id,
            granted_at=now,
            expires_at=now + GRANT_SECONDS,
        )
    )


def _is_shown_in(where: PlaceKey) -> ColumnElement[bool]:
    """Match the grants of a place, and those of agents that ask there for their work elsewhere."""
    hosts = select(session.c.id).join(place, place.c.id == session.c.place).where(is_place(where))
    asked = select(ask.c.id).where(ask.c.host.in_(hosts.correlate(None)))
    return is_place(where) | grant.c.ask.in_(asked.correlate(None))


def _state(now: float) -> Any:
    over = grant.c.ended_at.is_not(None) | (grant.c.generation != session.c.generation)
    return case((over, "ended"), (grant.c.expires_at <= now, "expired"), else_="active")


def _select(now: float) -> Select[Any]:
    return (
        select(
            grant,
            session.c.agent,
            place.c.service,
            place.c.name,
            _state(now).label("state"),
        )
        .join(session, session.c.id == grant.c.session)
        .join(place, place.c.id == session.c.place)
    )


def _grant_of(row: Row[Any]) -> Grant:
    return read_row(Grant, row, place=PlaceKey(row.service, row.name))
