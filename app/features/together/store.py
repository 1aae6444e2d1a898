"""Stores what is told of groups of delegations, which groups are over, and agents' reviews."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, select, update

from app.features.together.model import NewReview, Picked, Review
from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.proposals import ReviewFinding
from app.model.types import BridgeSessionRequest, TurnRef
from app.model.updates import AskRequest
from app.store.checkouts import say_at_home
from app.store.commits.admission import enter
from app.store.commits.asks import open_ask
from app.store.database import Store, write
from app.store.decisions import place_of
from app.store.dialects import insert
from app.store.tables import OPEN_TURN, ask, delegation, place, review, told, turn
from app.store.tree import GROUP_OVER, read_last_words
from app.store.values import read_row

_UNFINISHED = (
    select(delegation.c.group)
    .distinct()
    .where(
        delegation.c.group != "",
        ~select(told.c.mark).where(told.c.mark == GROUP_OVER + delegation.c.group).exists(),
    )
)
_RUNNING = (
    select(delegation.c.id)
    .join(turn, turn.c.id == delegation.c.turn)
    .join(place, place.c.id == delegation.c.root_place)
    .where(
        place.c.service == bindparam("service"),
        place.c.name == bindparam("called"),
        delegation.c.group != "",
        OPEN_TURN,
    )
)
_ASKED = select(ask.c.state, ask.c.answer).where(
    ask.c.kind == "race", ask.c.call == bindparam("of")
)
_LAST_DONE = select(func.max(turn.c.id)).where(
    turn.c.session == bindparam("of"), turn.c.state == "done", turn.c.successor.is_(None)
)


class GroupStore(Store):
    """What is told of groups, each thing once."""

    @write
    def enter(self, connection: Connection, heard: Heard, agent: str) -> int:
        """Return the session of an agent in the place of a message; it is begun if needed."""
        request = BridgeSessionRequest(
            external_session_id=heard.external,
            service_name=heard.place.service,
            agent_name=agent,
            prompt="",
            speaker=heard.speaker,
            message_id=heard.message_id,
            surface=heard.place,
            descriptive_name=heard.title,
        )
        return enter(connection, request, place_of(connection, heard), self._now())

    def unfinished(self) -> Sequence[str]:
        """List the groups that are not over."""
        return [group for (group,) in self._database.some(_UNFINISHED)]

    async def end(self, session_id: int, group: str, words: str = "") -> tuple[int, ...]:
        """Record that a group is over, and say so; return the posts to send."""
        return await self.tell(session_id, f"{GROUP_OVER}{group}", words)

    def running(self, where: PlaceKey) -> Sequence[int]:
        """List the delegations that work now because of a person's command in a place."""
        named = {"service": where.service, "called": where.name}
        return [number for (number,) in self._database.some(_RUNNING, **named)]

    @write
    def ask(
        self,
        connection: Connection,
        group: str,
        ref: TurnRef,
        request: AskRequest,
        *,
        deadline: float,
    ) -> tuple[int, ...]:
        """Ask people once about a group, where it began; return the posts to send."""
        if connection.execute(_ASKED, {"of": group}).first() is not None:
            return ()
        now = self._now()
        shown = open_ask(connection, request, ref, now, deadline=deadline, adrift=True)
        return (shown[1],)

    def picked(self, group: str) -> Picked | None:
        """Read what people answered about a group; None if they were not asked."""
        row = self._database.one(_ASKED, of=group)
        return None if row is None else Picked(row.state, row.answer or "")

    def last_words(self, session_id: int) -> str:
        """Read what the last turn of a session that is done ended with."""

        def read(connection: Connection) -> str:
            last = connection.execute(_LAST_DONE, {"of": session_id}).scalar()
            return "" if last is None else read_last_words(connection, session_id, last)

        return self._database.look(read)

    @write
    def tell(
        self, connection: Connection, session_id: int, mark: str, words: str, agent: str = ""
    ) -> tuple[int, ...]:
        """Say something once where a session began; return the posts to send."""
        new = {"session": session_id, "mark": mark}
        first = connection.execute(insert(told).on_conflict_do_nothing(), new).rowcount
        if not first or not words:
            return ()
        return (say_at_home(connection, session_id, mark, words, self._now(), agent),)


class ReviewStore(Store):
    """The reviews that agents gave."""

    @write
    def give(self, connection: Connection, new: NewReview) -> Review:
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
        given = insert(review).values(at=self._now(), **row).on_conflict_do_nothing()
        connection.execute(given)
        return _review_of(connection.execute(_of_turn(new.turn)).one())

    def of_turn(self, turn: int) -> Review | None:
        """Read the review that a turn gave."""
        row = self._database.one(_of_turn(turn))
        return None if row is None else _review_of(row)

    def unsent(self) -> Sequence[Review]:
        """List the reviews that may not have reached their platform and their place yet."""
        given = select(review).where(review.c.state == "given").order_by(review.c.id)
        return [_review_of(row) for row in self._database.some(given)]

    @write
    def sent(self, connection: Connection, review_id: int, link: str) -> None:
        """Record that a review is where it belongs, and where it can be read."""
        connection.execute(
            update(review).where(review.c.id == review_id).values(state="sent", link=link)
        )


def _of_turn(turn: int) -> Select[Any]:
    return select(review).where(review.c.turn == turn)


def _review_of(row: Row[Any]) -> Review:
    return read_row(
        Review,
        row,
        findings=tuple(map(ReviewFinding.read, row.findings)),
        author=row.author_session,
    )
