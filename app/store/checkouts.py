"""Stores the clone of each session, its progress, and what is proposed from it.

News of a proposal is told once, where the work began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    func,
    select,
    union,
    update,
)

from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.proposals import Proposed
from app.model.record import RecordEvent, RecordKind
from app.model.types import Entry, TurnRef, TurnState
from app.model.updates import AskRequest
from app.model.workspaces import Changes, Checkout, Judged, OpenedClone, Repository
from app.store.commits.asks import open_ask, withdraw_offers
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.posts import insert_post
from app.store.record import append
from app.store.record.describing import describe
from app.store.tables import checkout, delegation, place, session, surface, told, turn
from app.store.transcript import insert_entries
from app.store.values import read_row

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


class CheckoutStore(Store):
    """The checkout port."""

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

    @write
    def begin(self, connection: Connection, new: Checkout) -> None:
        """Record how a clone will be opened, before any of it is created."""
        names = ("session", "number", "way", "branch", "start", "told", "title", "body")
        row = {name: getattr(new, name) for name in names} | asdict(new.repository)
        connection.execute(insert(checkout), row)

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

    async def followed(self, session_id: int, number: int, commit: str, link: str) -> None:
        """Record that a clone has what another session pushed, and where that is proposed."""
        values = {"sent": commit, "told": commit, "link": link, "outcome": "", "checks": ""}
        await self._change(session_id, number, **values)

    @write
    def pushed(self, connection: Connection, session_id: int, number: int, commit: str) -> None:
        """Record that the bridge pushed a commit of an agent."""
        row = _one(connection, session_id, number)
        _set(connection, session_id, number, sent=commit, checks="")
        _note(connection, row, commit, self._now(), kind=RecordKind.PUSH, ref=commit)

    @write
    def told(
        self, connection: Connection, session_id: int, number: int, commit: str, link: str
    ) -> None:
        """Record that people were told of a commit, and where it is proposed."""
        row = _one(connection, session_id, number)
        _set(connection, session_id, number, told=commit, link=link, outcome="")
        if link:
            kind, how = RecordKind.PULL_REQUEST, "updated" if row.link == link else "opened"
            _note(connection, row, commit, self._now(), kind=kind, ref=link, outcome=how)

    async def worded(self, session_id: int, number: int, title: str, body: str) -> None:
        """Record an agent's own words for what is proposed from a clone."""
        await self._change(session_id, number, title=title, body=body)

    async def measured(self, session_id: int, number: int, changes: Changes) -> None:
        """Record how much changed in a clone."""
        await self._change(session_id, number, **asdict(changes))

    async def judged(self, session_id: int, number: int, found: Judged) -> None:
        """Record what others say about a clone's proposal."""
        await self._change(session_id, number, **asdict(found))

    async def moved(self, session_id: int, number: int, commit: str) -> None:
        """Record which commit a clone for reading shows now."""
        await self._change(session_id, number, start=commit, commit=commit)

    async def gone(self, session_id: int, number: int) -> None:
        """Record that a clone was deleted."""
        await self._change(session_id, number, state="gone")

    @write
    def _change(
        self, connection: Connection, /, session_id: int, number: int, **values: str | int
    ) -> None:
        _set(connection, session_id, number, **values)


def _is(session_id: int, number: int) -> ColumnElement[bool]:
    return (checkout.c.session == session_id) & (checkout.c.number == number)


def _one(connection: Connection, session_id: int, number: int) -> Row[Any]:
    return connection.execute(select(checkout).where(_is(session_id, number))).one()


def _set(connection: Connection, session_id: int, number: int, **values: str | int) -> None:
    connection.execute(update(checkout).where(_is(session_id, number)).values(**values))


def _note(
    connection: Connection,
    row: Row[Any],
    commit: str,
    now: float,
    *,
    kind: RecordKind,
    ref: str,
    outcome: str = "pushed",
) -> None:
    """Put into the record what left a clone, with the turn that did it."""
    begun = select(func.max(turn.c.id)).where(
        turn.c.session == row.session, turn.c.state != TurnState.QUEUED
    )
    number = connection.execute(begun).scalar()
    told = describe(connection, row.session, number) | {"repository": row.name}
    event = RecordEvent(
        kind=kind,
        source=f"{kind}:{row.session}:{row.number}:{commit}",
        at=now,
        outcome=outcome,
        session=row.session,
        turn=number,
        **told,
        what=row.branch,
        ref=ref,
    )
    append(connection, [event])


def _checkout_of(row: Row[Any]) -> Checkout:
    return read_row(
        Checkout,
        row,
        repository=Repository(row.name, row.url),
        judged=Judged(row.checks, row.review),
        changes=None if row.files is None else Changes(row.files, row.added, row.removed),
    )


OVERTAKEN = Note(NoteCode.OFFER_OVERTAKEN)


class ProposalStore(Store):
    """The proposals port."""

    def find(self, agent: str, repository: str, branch: str) -> Proposed | None:
        """Find an agent's proposal from a branch; None if there is none or it was removed."""
        query = _proposed(agent, repository).where(checkout.c.branch == branch)
        row = self._database.one(query.limit(1))
        return self._now_of(row) if row else None

    def latest(self, session_id: int) -> Proposed | None:
        """Return a session's latest proposal."""
        query = select(checkout).where(checkout.c.session == session_id, checkout.c.link != "")
        row = self._database.one(query.order_by(checkout.c.number.desc()).limit(1))
        return _proposed_of(row) if row else None

    def onto(self, agent: str, repository: str, base: str) -> Sequence[Proposed]:
        """List an agent's open proposals for a branch."""
        query = _proposed(agent, repository).where(
            checkout.c.base == base, checkout.c.link != "", checkout.c.outcome == ""
        )
        return [self._now_of(row) for row in self._database.some(query)]

    def _now_of(self, row: Row[Any]) -> Proposed:
        """Read a proposal as that of the agent it was handed over to, if it was."""
        heir = self._database.one(_GONE_ON, first=row.session, at=row.url, named=row.branch)
        return _proposed_of(heir or row)

    @write
    def settle(self, connection: Connection, proposed: Proposed, outcome: str) -> None:
        """Record that it was merged, closed or reopened."""
        same = (
            checkout.c.url == proposed.repository.url,
            checkout.c.branch == proposed.branch,
            checkout.c.way == "branch",
        )
        connection.execute(update(checkout).where(*same).values(outcome=outcome))

    @write
    def tell(
        self,
        connection: Connection,
        proposed: Proposed,
        mark: str,
        words: str,
        *,
        offer: AskRequest | None = None,
        deadline: float = 0.0,
        passed: bool = False,
    ) -> tuple[int, ...]:
        """Report news where the work began, as a line or an offer; return the posts to send."""
        now, new = self._now(), {"session": proposed.session, "mark": mark}
        if not connection.execute(insert(told).on_conflict_do_nothing(), new).rowcount:
            return ()
        posts = withdraw_offers(connection, proposed.session, OVERTAKEN, now)
        if passed:
            connection.execute(update(checkout).where(*_this(proposed)).values(tries=0))
        if offer is None:
            return (*posts, say_at_home(connection, proposed.session, mark, words, now))
        ref = TurnRef(proposed.session, _turn_at_home(connection, proposed.session))
        shown = open_ask(connection, offer, ref, now, deadline=deadline, adrift=True)
        return (*posts, shown[1])


_first = session.alias()
_GONE_ON = (
    select(checkout)
    .join(session, session.c.id == checkout.c.session)
    .join(_first, _first.c.id == bindparam("first"))
    .join(place, (place.c.id == _first.c.place) & (place.c.holder == session.c.agent))
    .where(
        session.c.place == _first.c.place,
        session.c.closed.is_(None),
        checkout.c.url == bindparam("at"),
        checkout.c.branch == bindparam("named"),
        checkout.c.way == "branch",
        checkout.c.sent != "",
    )
    .order_by(checkout.c.number.desc())
    .limit(1)
)
"""The proposal of the agent that holds the place and has gone on with the branch of another."""


def _proposed(agent: str, repository: str) -> Select[Any]:
    return (
        select(checkout)
        .join(session, session.c.id == checkout.c.session)
        .where(
            session.c.agent == agent,
            session.c.closed.is_(None),
            checkout.c.name == repository,
            checkout.c.way == "branch",
            checkout.c.sent != "",
        )
        .order_by(checkout.c.session.desc(), checkout.c.number.desc())
    )


def _this(proposed: Proposed) -> tuple[Any, ...]:
    return (
        checkout.c.session == proposed.session,
        checkout.c.branch == proposed.branch,
        checkout.c.way == "branch",
    )


def _home(connection: Connection, session_id: int) -> Row[Any]:
    """Find the surface where a session began."""
    mine = select(surface).where(surface.c.session == session_id).order_by(surface.c.id)
    return connection.execute(mine.limit(1)).one()


def _turn_at_home(connection: Connection, session_id: int) -> int:
    """Find the last turn that was asked for where a session began."""
    home = _home(connection, session_id)
    of_session = turn.c.session == session_id
    last = select(func.max(turn.c.id)).where(of_session, turn.c.surface == home.id)
    return int(connection.execute(last).scalar_one())


def say_at_home(
    connection: Connection, session_id: int, mark: str, words: str, now: float, agent: str = ""
) -> int:
    """Say something where a session began, as its agent or another one; return the post to send."""
    home = _home(connection, session_id)
    target = SessionKey(home.service, home.external, agent or home.agent)
    content = PostContent(kind="notice", note=words)
    insert_entries(connection, [Entry("notice", words, session=session_id)], now)
    post = NewPost(f"news:{session_id}:{mark}", target, content, session_id)
    return insert_post(connection, post, now)


def _proposed_of(row: Row[Any]) -> Proposed:
    return read_row(Proposed, row, repository=Repository(row.name, row.url))
