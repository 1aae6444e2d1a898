"""Stores what goes on between the turns of sessions, and tells people when it is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, or_, select, update

from app.features.background.wording import name
from app.model.background import Work
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import Entry, TurnRef
from app.model.updates import AskRequest
from app.store.commits.asks import close_asks, open_ask, target_of
from app.store.commits.endings import NOT_NEEDED
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.posts import insert_post
from app.store.tables import ask, background_work, member, session, turn
from app.store.transcript import insert_entries

_ALL = select(background_work).order_by(background_work.c.began_at)
_OF_SESSION = _ALL.where(background_work.c.session == bindparam("of"))
_LAST_TURN = (
    select(turn.c.id).where(turn.c.session == bindparam("of")).order_by(turn.c.id.desc()).limit(1)
)


@dataclass(frozen=True, slots=True)
class SessionWork:
    """Some work of one session."""

    session: int
    work: Work


class WorkStore(Store):
    """What goes on in the background."""

    async def all(self) -> Sequence[SessionWork]:
        """List what goes on, the oldest first."""
        rows = await self._database.all(_ALL.where(background_work.c.lost.is_(False)))
        return [SessionWork(row.session, _work_of(row)) for row in rows]

    async def of_session(self, session_id: int, *, lost: bool = False) -> Sequence[Work]:
        """List what goes on in a session, or what is lost and its agent does not know of yet."""
        rows = await self._database.all(
            _OF_SESSION.where(background_work.c.lost.is_(lost)), of=session_id
        )
        return [_work_of(row) for row in rows]

    @write
    def keep(self, connection: Connection, session_id: int, work: Sequence[Work]) -> None:
        """Store all that goes on in a session."""
        known = background_work.c.session == session_id
        goes_on = known & background_work.c.lost.is_(False)
        names = [each.id for each in work]
        gone = background_work.c.name.not_in(names)
        connection.execute(delete(background_work).where(goes_on, gone))
        for each in work:
            row = {
                "session": session_id,
                "name": each.id,
                "kind": each.kind,
                "about": each.about,
                "turn": each.turn,
                "began_at": each.began_at,
            }
            connection.execute(insert(background_work).on_conflict_do_nothing(), row)

    @write
    def lose(self, connection: Connection, session_id: int, *, wanted: bool) -> tuple[int, ...]:
        """Note that what a session had running is gone, and tell people; return the posts."""
        which = background_work.c.session == session_id
        return _lose(connection, which, self._now(), wanted=wanted)

    @write
    def lose_unserved(self, connection: Connection) -> tuple[int, ...]:
        """Note that everything is gone that no bridge serves any more, and tell people."""
        own = session.c.served_by
        unserved = select(session.c.id).where(or_(own.is_(None), own.not_in(select(member.c.name))))
        which = background_work.c.session.in_(unserved)
        return _lose(connection, which, self._now(), wanted=False)

    @write
    def forget(self, connection: Connection, session_id: int) -> None:
        """Forget what was lost: the agent was told."""
        lost = background_work.c.lost.is_(True) & (background_work.c.session == session_id)
        connection.execute(delete(background_work).where(lost))

    @write
    def ask(
        self, connection: Connection, session_id: int, request: AskRequest, *, deadline: float
    ) -> tuple[int, int] | None:
        """Ask people about the work of a session; returns the ids of the ask and its post."""
        last = connection.execute(_LAST_TURN, {"of": session_id}).scalar()
        if last is None:
            return None
        ref = TurnRef(session_id, last)
        return open_ask(connection, request, ref, self._now(), deadline=deadline, adrift=True)

    async def answer(self, ask_id: int) -> str | None:
        """Read what people answered; empty if they did not, None if they still can."""
        rows = await self._database.all(select(ask.c.state, ask.c.answer).where(ask.c.id == ask_id))
        return None if rows and rows[0].state == "open" else (rows[0].answer or "" if rows else "")


def _lose(
    connection: Connection, which: ColumnElement[bool], now: float, *, wanted: bool
) -> tuple[int, ...]:
    still = which & background_work.c.lost.is_(False)
    rows = connection.execute(_ALL.where(still)).all()
    by_session: dict[int, list[Work]] = {}
    for row in rows:
        by_session.setdefault(row.session, []).append(_work_of(row))
    connection.execute(update(background_work).where(still).values(lost=True))
    posts: list[int] = []
    for session_id, work in by_session.items():
        last = connection.execute(_LAST_TURN, {"of": session_id}).scalar_one()
        of_session = (ask.c.session == session_id) & (ask.c.kind == "background")
        posts += close_asks(connection, of_session, "cancelled", NOT_NEEDED, now)
        note = Note(NoteCode.WORK_ENDED if wanted else NoteCode.WORK_LOST, about=name(work))
        insert_entries(connection, [Entry("notice", note=note, session=session_id)], now)
        content = PostContent(kind="notice", reason=note)
        key = f"work:{session_id}:{now}"
        told = NewPost(key, target_of(connection, last), content, session_id)
        posts.append(insert_post(connection, told, now))
    return tuple(posts)


def _work_of(row: Row[Any]) -> Work:
    return Work(row.name, row.kind, row.about, row.turn, row.began_at)
