"""Stores the clone of each session and its progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, bindparam, func, select, union, update

from app.model.keys import PlaceKey
from app.model.workspaces import Changes, Checkout, Judged, OpenedClone, Repository
from app.store.database import Database
from app.store.dialects import insert
from app.store.tables import checkout, delegation, place, session, surface

_LATEST = (
    select(checkout)
    .where(checkout.c.session == bindparam("of"))
    .order_by(checkout.c.number.desc())
    .limit(1)
)
_OF_BRANCH = (
    select(checkout.c.session)
    .where(checkout.c.url == bindparam("at"), checkout.c.branch == bindparam("named"))
    .where(checkout.c.way == "branch")
    .order_by(checkout.c.session.desc())
    .limit(1)
)

_PLACE = (
    select(place.c.id)
    .where(place.c.service == bindparam("service"), place.c.name == bindparam("called"))
    .scalar_subquery()
)
# Where agents work for agents, those of the place where it all began are around.
_ROOT = func.coalesce(
    select(func.min(delegation.c.root_place))
    .join(session, session.c.id == delegation.c.session)
    .where(session.c.place == _PLACE)
    .scalar_subquery(),
    _PLACE,
)
_HERE = union(
    select(surface.c.session).where(surface.c.place == _ROOT),
    select(delegation.c.session).where(delegation.c.root_place == _ROOT),
)
_LAST = (
    select(checkout.c.session, func.max(checkout.c.number).label("number"))
    .group_by(checkout.c.session)
    .subquery()
)
_IN_PLACE = (
    select(checkout)
    .join(session, session.c.id == checkout.c.session)
    .join(_LAST, (_LAST.c.session == checkout.c.session) & (_LAST.c.number == checkout.c.number))
    .where(checkout.c.session.in_(_HERE))
    .order_by(session.c.updated_at.desc(), session.c.id.desc())
)


class CheckoutStore:
    """The checkout port."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, session_id: int) -> Checkout | None:
        """Read the clone that a session was given last."""
        row = self._database.one(_LATEST, of=session_id)
        return _checkout_of(row) if row else None

    async def all(self) -> Sequence[Checkout]:
        """List the clones that still exist."""
        query = select(checkout).where(checkout.c.state != "gone").order_by(checkout.c.session)
        return [_checkout_of(row) for row in await self._database.all(query)]

    def in_place(self, where: PlaceKey) -> Sequence[Checkout]:
        """List the last clone of each session around a place, the last used session first."""
        named = {"service": where.service, "called": where.name}
        return [_checkout_of(row) for row in self._database.some(_IN_PLACE, **named)]

    def of_branch(self, url: str, branch: str) -> int | None:
        """Tell which session made a branch of a repository."""
        row = self._database.one(_OF_BRANCH, at=url, named=branch)
        return row.session if row else None

    async def begin(self, new: Checkout) -> None:
        """Record how a clone will be opened, before any of it is created."""
        row = {
            "session": new.session,
            "number": new.number,
            "name": new.repository.name,
            "url": new.repository.url,
            "way": new.way,
            "branch": new.branch,
            "start": new.start,
            "told": new.told,
            "title": new.title,
            "body": new.body,
        }
        await self._database.writer.run(
            lambda connection: connection.execute(insert(checkout), row)
        )

    async def ready(self, session_id: int, number: int, opened: OpenedClone, machine: str) -> None:
        """Record that a clone is ready, on a machine."""
        await self._change(
            session_id,
            number,
            state="ready",
            base=opened.base,
            commit=opened.commit,
            machine=machine,
        )

    async def sent(self, session_id: int, number: int, commit: str) -> None:
        """Record that a commit was pushed to the remote."""
        await self._change(session_id, number, sent=commit, checks="")

    async def told(self, session_id: int, number: int, commit: str, link: str) -> None:
        """Record that people were told of a commit, and where it is proposed."""
        await self._change(session_id, number, told=commit, link=link, outcome="")

    async def worded(self, session_id: int, number: int, title: str, body: str) -> None:
        """Record an agent's own words for what is proposed from a clone."""
        await self._change(session_id, number, title=title, body=body)

    async def measured(self, session_id: int, number: int, changes: Changes) -> None:
        """Record how much changed in a clone."""
        await self._change(
            session_id,
            number,
            files=changes.files,
            added=changes.added,
            removed=changes.removed,
        )

    async def judged(self, session_id: int, number: int, found: Judged) -> None:
        """Record what others say about a clone's proposal."""
        await self._change(session_id, number, checks=found.checks, review=found.review)

    async def moved(self, session_id: int, number: int, commit: str) -> None:
        """Record which commit a clone for reading shows now."""
        await self._change(session_id, number, start=commit, commit=commit)

    async def gone(self, session_id: int, number: int) -> None:
        """Record that a clone was deleted."""
        await self._change(session_id, number, state="gone")

    async def _change(self, session_id: int, number: int, **values: str | int) -> None:
        here = (checkout.c.session == session_id) & (checkout.c.number == number)
        change = update(checkout).where(here).values(**values)
        await self._database.writer.run(lambda connection: connection.execute(change))


def _checkout_of(row: Row[Any]) -> Checkout:
    return Checkout(
        session=row.session,
        number=row.number,
        repository=Repository(row.name, row.url),
        way=row.way,
        branch=row.branch,
        start=row.start,
        base=row.base,
        commit=row.commit,
        sent=row.sent,
        told=row.told,
        link=row.link,
        title=row.title,
        body=row.body,
        state=row.state,
        outcome=row.outcome,
        judged=Judged(row.checks, row.review),
        changes=None if row.files is None else Changes(row.files, row.added, row.removed),
        machine=row.machine,
    )
