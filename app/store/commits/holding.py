"""Gives a place to an agent, and notes whose work that agent goes on with."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from app.store.tables import checkout, place, session, surface


def hold(connection: Connection, place_id: int, agent: str) -> None:
    """Give a place to an agent inside the caller's commit; no change if it has the place."""
    here = place.c.id == place_id
    before = connection.execute(select(place.c.holder).where(here)).scalar_one()
    if before == agent:
        return
    # Not the one addressed last: that may have been a reviewer.
    worked = (
        select(session.c.agent)
        .join(checkout, checkout.c.session == session.c.id)
        .join(surface, surface.c.session == session.c.id)
        .where(surface.c.place == place_id, session.c.agent != agent, checkout.c.branch != "")
        .order_by((session.c.agent == (before or "")).desc(), session.c.updated_at.desc())
        .limit(1)
    )
    predecessor = connection.execute(worked).scalar()
    connection.execute(update(place).where(here).values(holder=agent, predecessor=predecessor))


def remove_session(connection: Connection, session_id: int) -> None:
    """Remove an agent from its place inside the caller's commit; it no longer holds the place."""
    gone = update(session).where(session.c.id == session_id).values(closed="removed")
    row = connection.execute(gone.returning(session.c.place, session.c.agent)).one()
    held = (place.c.id == row.place) & (place.c.holder == row.agent)
    connection.execute(update(place).where(held).values(holder=None, predecessor=None))
