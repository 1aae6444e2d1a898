"""Stores sessions' proposals, and reports news of each once, where the work began."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, select, update

from app.model.keys import SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.proposals import Proposed
from app.model.types import Entry, TurnRef
from app.model.updates import AskRequest
from app.model.workspaces import Repository
from app.store.commits.asks import open_ask
from app.store.commits.offers import withdraw_offers
from app.store.database import Database
from app.store.dialects import insert
from app.store.posts import insert_post
from app.store.tables import checkout, place, session, surface, told, turn
from app.store.transcript import insert_entries

OVERTAKEN = Note(NoteCode.OFFER_OVERTAKEN)


class ProposalStore:
    """The proposals port."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

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

    async def settle(self, proposed: Proposed, outcome: str) -> None:
        """Record that it was merged, closed or reopened."""
        same = (
            checkout.c.url == proposed.repository.url,
            checkout.c.branch == proposed.branch,
            checkout.c.way == "branch",
        )
        change = update(checkout).where(*same).values(outcome=outcome)
        await self._database.writer.run(lambda connection: connection.execute(change))

    async def tell(
        self,
        proposed: Proposed,
        mark: str,
        words: str,
        *,
        offer: AskRequest | None = None,
        deadline: float = 0.0,
        passed: bool = False,
    ) -> tuple[int, ...]:
        """Report news where the work began, as a line or an offer; return the posts to send."""

        def write(connection: Connection) -> tuple[int, ...]:
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

        return await self._database.writer.run(write)


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
    return Proposed(
        session=row.session,
        repository=Repository(row.name, row.url),
        branch=row.branch,
        base=row.base,
        link=row.link,
        tries=row.tries,
        outcome=row.outcome,
    )
