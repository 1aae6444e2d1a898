"""Reads asks that wait for people, and stores the copies that remind people of them.

A copy is a post with a key of its ask and of whom it reaches, so each is made once, and closing
the ask ends all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from app.model.keys import PlaceKey, SessionKey
from app.model.posts import Fact, NewPost, Note, NoteCode
from app.model.text import MINUTE, duration
from app.model.types import Speaker
from app.store.commits.asks import ask_post_key, copy_post_key, root_of, shown_in
from app.store.database import Store, write
from app.store.posts import insert_post
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    ask,
    place,
    post,
    session,
)
from app.store.turns import messages_of
from app.store.values import content_of

_ONE = select(ask).where(ask.c.id == bindparam("of"), ASK_IS_OPEN)
_WAITING = (
    select(ask)
    .where(ASK_IS_OPEN, ASK_HOLDS, ask.c.resume_at.is_(None))
    .where(ask.c.created_at <= bindparam("before"), ask.c.deadline > bindparam("now"))
    .order_by(ask.c.id)
)
_PLACE = (
    select(place.c.service, place.c.name)
    .join(session, session.c.place == place.c.id)
    .where(session.c.id == bindparam("of"))
)
_SHOWN = select(post.c.content).where(post.c.key == bindparam("name"))
_UNANSWERED = (
    select(ask.c.id, ask.c.title)
    .where(ask.c.session == bindparam("of"), ask.c.state == "expired", ask.c.adrift.is_(True))
    .order_by(ask.c.id)
)


@dataclass(frozen=True, slots=True)
class WaitingAsk:
    """An ask that nobody answered so far, and whom it concerns."""

    id: int
    agent: str
    surface: SessionKey
    """The conversation in which people see it."""
    place: PlaceKey
    since: float
    asker: Speaker | None
    """The person whose words the agent works on; None if nobody said them."""
    link: str
    """Where these words are."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One more post that shows an ask."""

    target: SessionKey
    mentions: tuple[str, ...] = ()
    """Whom it names; nobody in a conversation with one person."""
    link: str = ""
    """Where the ask is, in a conversation elsewhere."""

    @property
    def reaches(self) -> str:
        """Whom it reaches, as a part of its key."""
        return ",".join(self.mentions) or self.target.external


class ReminderStore(Store):
    """The reminders port."""

    async def waiting(self, before: float) -> Sequence[WaitingAsk]:
        """List the asks that were open before a time and still are."""
        now = self._now()

        def read(connection: Connection) -> list[WaitingAsk]:
            rows = connection.execute(_WAITING, {"before": before, "now": now})
            return [_waiting_of(connection, row) for row in rows.all()]

        return await self._database.read(read)

    @write
    def remind(self, connection: Connection, ask_id: int, copies: Sequence[Copy]) -> Sequence[int]:
        """Store copies of an ask, each once; none if it is not open any more."""
        now = self._now()
        row = connection.execute(_ONE, {"of": ask_id}).first()
        shown = connection.execute(_SHOWN, {"name": ask_post_key(ask_id)}).scalar()
        if row is None or shown is None:
            return ()
        note = Note(NoteCode.ASK_WAITS, about=duration(_whole_minutes(now - row.created_at)))
        content = replace(content_of(shown), reason=note, asker="")
        return [
            insert_post(
                connection,
                NewPost(
                    copy_post_key(ask_id, each.reaches),
                    each.target,
                    replace(content, mentions=each.mentions, facts=_facts(each)),
                    row.session,
                    row.turn,
                ),
                now,
            )
            for each in copies
        ]

    async def unanswered(self, session_id: int) -> Sequence[tuple[int, str]]:
        """List the asks of a session that nobody answered, and that its agent was not told of."""
        rows = await self._database.all(_UNANSWERED, of=session_id)
        return [(row.id, row.title) for row in rows]

    @write
    def told(self, connection: Connection, asks: Sequence[int]) -> None:
        """Note that an agent was told that nobody answered these."""
        connection.execute(update(ask).where(ask.c.id.in_(asks)).values(adrift=False))


def _whole_minutes(seconds: float) -> float:
    return seconds - seconds % MINUTE if seconds >= MINUTE else seconds


def _facts(copy: Copy) -> tuple[Fact, ...]:
    return (Fact("Details", copy.link),) if copy.link else ()


def _waiting_of(connection: Connection, row: Row[Any]) -> WaitingAsk:
    target = shown_in(connection, row.turn)
    root = root_of(connection, row.turn)
    work = row.turn if root is None or root.root_turn is None else root.root_turn
    said = [each for each in messages_of(connection, work) if each.speaker.kind == "person"]
    where = connection.execute(_PLACE, {"of": row.host or row.session}).one()
    return WaitingAsk(
        id=row.id,
        agent=target.agent,
        surface=target,
        place=PlaceKey(*where),
        since=row.created_at,
        asker=said[-1].speaker if said else None,
        link=said[-1].link if said else "",
    )
