"""Stores the names of repositories, and updates everything when one is renamed.

A repository is identified by its host and number. One that takes another's former name gets none of
what was said and done under it before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, exists, func, literal, select, update

from app.model.inbound import Naming, Renamed
from app.model.keys import AreaOf, no_area
from app.store.database import Database, Store
from app.store.dialects import insert
from app.store.tables import checkout, place, post, repository, schedule, surface


class NameStore(Store):
    """The names port."""

    def __init__(
        self, database: Database, now: Callable[[], float], area_of: AreaOf = no_area
    ) -> None:
        super().__init__(database, now, area_of)
        self._current: dict[tuple[str, int], str] = {}
        """A cache for the bridge that reads events: only it follows renames."""

    def of(self, host: str, number: int) -> str | None:
        """Return the current name of a repository."""
        known = self._current.get((host, number))
        if known is not None:
            return known
        row = self._database.one(_current(host, number))
        return None if row is None else self._current.setdefault((host, number), row.name)

    def now(self, host: str, name: str) -> str:
        """Return the current name of the repository that had this name; else the name itself."""
        row = self._database.one(_named(host, name))
        if row is None or row.current:
            return name
        # Not from the cache: another bridge may have followed a rename since.
        now = self._database.one(_current(host, row.number))
        return name if now is None else now.name

    def plan(self, naming: Naming) -> Sequence[Renamed]:
        """List the renames that follow if a repository has this name, in order."""
        return self._database.look(lambda connection: _plan(connection, naming))

    async def follow(self, naming: Naming) -> None:
        """Record a name, and update sessions, places, clones and posts."""
        await self._database.writer.run(lambda connection: _follow(connection, naming))
        self._current.clear()


def _plan(connection: Connection, naming: Naming) -> list[Renamed]:
    host, name = naming.host, naming.name
    holder = connection.execute(_named(host, name)).first()
    known = connection.execute(_current(host, naming.number)).scalar()
    if known == name or _is_former(naming, known, holder):
        return []
    moves: list[Renamed] = []
    if holder is not None and holder.current and holder.number != naming.number:
        moves.append(Renamed(naming.service, host, name, f"{name}.{holder.number}"))
    before = known or _unclaimed(connection, naming)
    if before is not None:
        moves.append(Renamed(naming.service, host, before, name))
    return moves


def _follow(connection: Connection, naming: Naming) -> None:
    host, number, name = naming.host, naming.number, naming.name
    holder = connection.execute(_named(host, name)).first()
    known = connection.execute(_current(host, number)).scalar()
    if known == name or _is_former(naming, known, holder):
        return
    for renamed in _plan(connection, naming):
        _move(connection, renamed)
    if holder is not None and holder.current and holder.number != number:
        _keep(connection, host, holder.number, f"{name}.{holder.number}")
    if (before := _unclaimed(connection, naming)) is not None:
        _keep(connection, host, number, before)
    former = (repository.c.host == host) & (repository.c.number == number)
    connection.execute(update(repository).where(former).values(current=False))
    _keep(connection, host, number, name)


def _is_former(naming: Naming, known: str | None, holder: Row[Any] | None) -> bool:
    """Tell whether an event is from before its repository was renamed."""
    had_it = known is not None and holder is not None and holder.number == naming.number
    return had_it and not naming.before


def _unclaimed(connection: Connection, naming: Naming) -> str | None:
    """Return the former name, if no known repository has or had it."""
    if not naming.before or naming.before == naming.name:
        return None
    held = connection.execute(_named(naming.host, naming.before)).first()
    return naming.before if held is None else None


def _keep(connection: Connection, host: str, number: int, name: str) -> None:
    row = {"host": host, "name": name, "number": number, "current": True}
    connection.execute(
        insert(repository)
        .values(row)
        .on_conflict_do_update(index_elements=["host", "name"], set_=row)
    )


def _move(connection: Connection, renamed: Renamed) -> None:
    """Replace the old name by the new one everywhere."""
    old, new = renamed.old, renamed.new
    for column, unique in (
        (place.c.name, [place.c.service]),
        (surface.c.external, [surface.c.service, surface.c.agent]),
        (post.c.external, []),
        (schedule.c.external, []),
        (schedule.c.place, []),
    ):
        table = column.table
        there = func.substr(column, 1, len(old) + 1) == f"{old}:"
        changed: ColumnElement[Any] = literal(new) + func.substr(column, len(old) + 1)
        change = update(table).where(table.c.service == renamed.service, there)
        if unique:  # a row that has the new name already stays the one
            other = table.alias()
            same = (other.c[each.name] == each for each in unique)
            change = change.where(~exists().where(other.c[column.name] == changed, *same))
        connection.execute(change.values({column: changed}))
    connection.execute(update(place).where(place.c.repository == old).values(repository=new))
    connection.execute(
        update(checkout)
        .where(checkout.c.name == old)
        .values(
            name=new,
            url=func.replace(checkout.c.url, f"/{old}.git", f"/{new}.git"),
            link=func.replace(checkout.c.link, f"/{old}/", f"/{new}/"),
        )
    )


def _named(host: str, name: str) -> Any:
    return select(repository).where(repository.c.host == host, repository.c.name == name)


def _current(host: str, number: int) -> Any:
    return select(repository.c.name).where(
        repository.c.host == host, repository.c.number == number, repository.c.current.is_(True)
    )
