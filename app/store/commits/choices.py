"""Writes the repository of a place, and its area's default, inside the caller's commit."""

from __future__ import annotations

from sqlalchemy import Connection, func, select, update

from app.model.keys import AreaOf, PlaceKey
from app.store.dialects import insert
from app.store.tables import place


def choose(connection: Connection, place_id: int, repository: str) -> None:
    """Give a place its repository."""
    connection.execute(update(place).where(place.c.id == place_id).values(repository=repository))


def remember(connection: Connection, place_id: int, repository: str, area_of: AreaOf) -> None:
    """Make a repository the default for new places of the same area, if it has one."""
    row = connection.execute(
        select(place.c.service, place.c.name).where(place.c.id == place_id)
    ).one()
    area = area_of(PlaceKey(row.service, row.name))
    if area is None:
        return
    kept = {"service": area.service, "name": area.name, "repository": repository}
    connection.execute(
        insert(place).on_conflict_do_update(
            index_elements=[place.c.service, place.c.name], set_={"repository": repository}
        ),
        kept,
    )


def pin(connection: Connection, where: PlaceKey, repository: str) -> str:
    """Give a place its repository if it has none; return the one it has."""
    first = func.coalesce(place.c.repository, repository)
    here = (place.c.service == where.service) & (place.c.name == where.name)
    chosen = connection.execute(
        update(place).where(here).values(repository=first).returning(place.c.repository)
    )
    return str(chosen.scalar_one())
