"""Stores agents' reviews."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, select, update

from app.model.reviews import Finding, NewReview, Review
from app.store.database import Database
from app.store.dialects import insert
from app.store.tables import review


class ReviewStore:
    """The review port."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    async def give(self, new: NewReview) -> Review:
        """Store a review, or return the one that its turn gave before."""
        subject = new.subject
        row = {
            "session": new.session,
            "turn": new.turn,
            "verdict": new.verdict,
            "body": new.body,
            "findings": [each.data() for each in new.findings],
            "author_session": None if subject is None else subject.author,
            "repository": "" if subject is None else subject.repository.name,
            "branch": "" if subject is None else subject.branch,
            "commit": "" if subject is None else subject.commit,
        }

        def write(connection: Connection) -> Review:
            given = insert(review).values(at=self._now(), **row).on_conflict_do_nothing()
            connection.execute(given)
            return _review_of(connection.execute(_of_turn(new.turn)).one())

        return await self._database.writer.run(write)

    def of_turn(self, turn: int) -> Review | None:
        """Read the review that a turn gave."""
        row = self._database.one(_of_turn(turn))
        return None if row is None else _review_of(row)

    def unsent(self) -> Sequence[Review]:
        """List the reviews that may not have reached their platform and their place yet."""
        given = select(review).where(review.c.state == "given").order_by(review.c.id)
        return [_review_of(row) for row in self._database.some(given)]

    async def sent(self, review_id: int, link: str) -> None:
        """Record that a review is where it belongs, and where it can be read."""
        change = update(review).where(review.c.id == review_id).values(state="sent", link=link)
        await self._database.writer.run(lambda connection: connection.execute(change))


def _of_turn(turn: int) -> Select[Any]:
    return select(review).where(review.c.turn == turn)


def _review_of(row: Row[Any]) -> Review:
    return Review(
        id=row.id,
        session=row.session,
        turn=row.turn,
        verdict=row.verdict,
        body=row.body,
        findings=tuple(map(Finding.read, row.findings)),
        author=row.author_session,
        repository=row.repository,
        branch=row.branch,
        commit=row.commit,
        link=row.link,
        state=row.state,
    )
