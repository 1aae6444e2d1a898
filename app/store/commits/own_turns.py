"""Begins turns that agents begin by themselves, inside the caller's commit.

A turn of its own begins only where the session has nothing else to run: a turn that runs, or is
about to, takes what the agent began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection, func, or_, select

from app.model.background import Woken
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import Entry, TurnRef, TurnState
from app.store.commits.asks import target_of
from app.store.dialects import insert
from app.store.posts import address_like, insert_post, turn_post_key
from app.store.tables import post, session, turn
from app.store.transcript import insert_entries

HOUR_SECONDS: Final = 3600.0
_RUNS = turn.c.state.in_((TurnState.STARTING, TurnState.PROMPTED))
_WAITS = (turn.c.state == TurnState.QUEUED) & turn.c.held.is_(False)
_IS_OWN = turn.c.woken_by.is_not(None)


@dataclass(frozen=True, slots=True)
class OwnTurnLimits:
    """How many turns an agent may begin by itself in one session; a person's message resets it."""

    per_hour: int = 20
    per_session: int = 100


@dataclass(frozen=True, slots=True)
class OwnTurn:
    """What became of the wish of an agent to begin a turn."""

    answer: Literal["begun", "busy", "limit"]
    ref: TurnRef | None = None
    posts: tuple[int, ...] = ()


def begin_own(
    connection: Connection, session_id: int, woken: Woken, limits: OwnTurnLimits, now: float
) -> OwnTurn:
    """Queue a turn that an agent began, unless another one comes, or it began too many."""
    of_session = turn.c.session == session_id
    closed = connection.execute(select(session.c.closed).where(session.c.id == session_id)).first()
    last = connection.execute(
        select(turn.c.id, turn.c.surface).where(of_session).order_by(turn.c.id.desc()).limit(1)
    ).first()
    if closed is None or closed.closed is not None or last is None:
        return OwnTurn("limit")
    if connection.execute(select(turn.c.id).where(of_session, or_(_RUNS, _WAITS))).first():
        return OwnTurn("busy")
    asked = select(func.coalesce(func.max(turn.c.id), 0)).where(of_session, ~_IS_OWN)
    asked_id = connection.execute(asked).scalar_one()
    since = of_session & _IS_OWN & (turn.c.id > asked_id)
    counted = select(func.count()).select_from(turn)
    in_hour = connection.execute(counted.where(since, turn.c.created_at > now - HOUR_SECONDS))
    if in_hour.scalar_one() >= limits.per_hour:
        return _refuse(connection, last.id, asked_id, f"hour {limits.per_hour}", now)
    if connection.execute(counted.where(since)).scalar_one() >= limits.per_session:
        return _refuse(connection, last.id, asked_id, f"session {limits.per_session}", now)
    return _begin(connection, session_id, woken, last.id, now)


def _begin(
    connection: Connection, session_id: int, woken: Woken, last_id: int, now: float
) -> OwnTurn:
    known = select(turn.c.id, turn.c.surface).where(
        turn.c.session == session_id, turn.c.id.in_((woken.turn or 0, last_id))
    )
    first = connection.execute(known.order_by(turn.c.id)).first()
    assert first is not None
    new = {
        "session": session_id,
        "surface": first.surface,
        "woken_by": woken.by,
        "about": woken.about,
        "origin": first.id,
        "created_at": now,
    }
    turn_id = connection.execute(insert(turn).returning(turn.c.id), new).scalar_one()
    note = Note(NoteCode.WOKEN, woken.by, woken.about)
    begun = Entry("notice", note=note, data={"origin": first.id}, session=session_id, turn=turn_id)
    insert_entries(connection, [begun], now)
    content = address_like(
        connection, turn_post_key(first.id), PostContent(kind="turn", state="starting")
    )
    target = target_of(connection, turn_id)
    shown = NewPost(turn_post_key(turn_id), target, content, session_id, turn_id)
    ref = TurnRef(session_id, turn_id)
    return OwnTurn("begun", ref, (insert_post(connection, shown, now),))


def _refuse(connection: Connection, last_id: int, asked_id: int, limit: str, now: float) -> OwnTurn:
    """Tell people once that an agent has begun as many turns as it may."""
    target = target_of(connection, last_id)
    row = connection.execute(select(turn.c.session).where(turn.c.id == last_id)).one()
    key = f"own-turns:{row.session}:{asked_id}"
    if connection.execute(select(post.c.id).where(post.c.key == key)).first() is not None:
        return OwnTurn("limit")
    note = Note(NoteCode.OWN_TURNS_LIMIT, about=limit)
    insert_entries(connection, [Entry("notice", note=note, session=row.session)], now)
    told = NewPost(key, target, PostContent(kind="notice", reason=note), row.session)
    return OwnTurn("limit", posts=(insert_post(connection, told, now),))
