"""Ends turns inside somebody's commit: stopped, dropped, given up, or gone on with in another.

A turn ends with all that it asks, and people see in its post how it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sqlalchemy import Connection, insert, select, update

from app.core.posts import NewPost, PostContent
from app.core.types import Entry, TurnRef, TurnState
from app.store.commits.asks import close_asks, target_of
from app.store.posts import addressed, end_post, finish_post, insert_post, turn_post_key
from app.store.tables import ASK_IS_OPEN, ask, heard, session, turn
from app.store.transcript import insert_entries

RUNNING = (TurnState.STARTING, TurnState.PROMPTED)
IN_THE_WAY = turn.c.state.in_(RUNNING) | turn.c.paused.is_not(None)
"""What keeps the turns behind it from running."""
STOPPED = PostContent(kind="turn", state="stopped", note="Stopped.")
DROPPED = PostContent(kind="turn", state="stopped", note="Dropped before it began.")
NOT_NEEDED = "Not needed any more."


def stop_running(connection: Connection, session_id: int, now: float) -> list[int]:
    """Stop what runs, is paused or parked, if anything is; what waits is left alone."""
    posts = end_parked(connection, session_id, now)
    running = connection.execute(
        select(turn.c.id).where(turn.c.session == session_id, IN_THE_WAY)
    ).first()
    return posts if running is None else posts + stop_session(connection, session_id, now)


def hand_over(connection: Connection, session_id: int, now: float) -> list[int]:
    """Stop what stands in the way of what waits; that may have begun since somebody looked."""
    of_session = turn.c.session == session_id
    waiting = connection.execute(
        select(turn.c.id).where(
            of_session, turn.c.state == TurnState.QUEUED, turn.c.paused.is_(None)
        )
    ).first()
    running = connection.execute(select(turn.c.id).where(of_session, IN_THE_WAY)).first()
    return stop_session(connection, session_id, now, parked=False) if waiting and running else []


def end_parked(connection: Connection, session_id: int, now: float) -> list[int]:
    """End what waits for an answer without a process."""
    parked = connection.execute(
        select(turn.c.id).where(turn.c.session == session_id, turn.c.state == TurnState.PARKED)
    )
    return [
        post
        for turn_id in parked.scalars().all()
        for post in end_waiting(connection, turn_id, STOPPED.note, now)
    ]


def end_waiting(
    connection: Connection,
    turn_id: int,
    note: str,
    now: float,
    state: Literal[TurnState.CANCELLED, TurnState.DONE] = TurnState.CANCELLED,
) -> list[int]:
    """End a turn that waits for people, with what it had shown so far."""
    posts = close_asks(connection, ask.c.turn == turn_id, "cancelled", note, now)
    session_id = _close_turn(connection, turn_id, state, now)
    say(connection, session_id, turn_id, note, now)
    shown = "done" if state is TurnState.DONE else "stopped"
    return posts + _present(end_post(connection, turn_post_key(turn_id), shown, note))


def end_if_idle(
    connection: Connection,
    turn_id: int,
    state: Literal[TurnState.CANCELLED, TurnState.DONE],
    note: str,
    now: float,
) -> list[int]:
    """End a turn without a process once it waits for no answer any more."""
    row = connection.execute(select(turn).where(turn.c.id == turn_id)).one()
    still = select(ask.c.id).where(ask.c.turn == turn_id, ASK_IS_OPEN, ask.c.kind != "offer")
    is_idle = row.state == TurnState.PARKED or row.paused is not None
    if not is_idle or connection.execute(still).first() is not None:
        return []
    return end_waiting(connection, turn_id, note, now, state)


def go_on_after(
    connection: Connection, turn_id: int, note: str, now: float
) -> tuple[TurnRef, list[int]]:
    """End a parked turn and begin the one that goes on with its work; returns it and the posts.

    The messages and the asks are the new turn's from now on.
    """
    old = connection.execute(select(turn).where(turn.c.id == turn_id)).one()
    new = {
        "session": old.session,
        "surface": old.surface,
        "continued": True,
        "created_at": now,
    }
    new_id = connection.execute(insert(turn).returning(turn.c.id), new).scalar_one()
    connection.execute(update(heard).where(heard.c.turn == turn_id).values(turn=new_id))
    alive = ask.c.adrift.is_(True) & ask.c.state.in_(("open", "answered"))
    connection.execute(update(ask).where(ask.c.turn == turn_id, alive).values(turn=new_id))
    _close_turn(connection, turn_id, TurnState.DONE, now)
    connection.execute(update(turn).where(turn.c.id == turn_id).values(successor=new_id))
    ended = end_post(connection, turn_post_key(turn_id), "done", note)
    begun = NewPost(
        turn_post_key(new_id),
        target_of(connection, turn_id),
        addressed(connection, turn_post_key(turn_id), PostContent(kind="turn", state="starting")),
        old.session,
        new_id,
    )
    return TurnRef(old.session, new_id), [*_present(ended), insert_post(connection, begun, now)]


def stop_session(
    connection: Connection, session_id: int, now: float, *, parked: bool = True
) -> list[int]:
    """Mark what runs as stopped and hold what waits; what had not begun or is parked ends here."""
    of_session = turn.c.session == session_id
    ended = end_parked(connection, session_id, now) if parked else []
    first = connection.execute(
        select(turn.c.id, turn.c.state, turn.c.paused)
        .where(of_session, turn.c.state.in_((*RUNNING, TurnState.QUEUED)))
        .order_by(turn.c.id)
    ).first()
    if first is None:
        return ended
    connection.execute(
        update(turn)
        .where(of_session, turn.c.state == TurnState.QUEUED, turn.c.id != first.id)
        .values(held=True)
    )
    if first.state in RUNNING:
        connection.execute(update(turn).where(turn.c.id == first.id).values(stopped=True))
        return ended
    if first.paused is not None:
        return ended + end_waiting(connection, first.id, STOPPED.note, now)
    posts = end_turn(connection, first.id, TurnState.CANCELLED, STOPPED, now)
    # What had not begun has no rows of its own, and none of another turn may stand between them.
    say(connection, session_id, None, STOPPED.note, now)
    return ended + posts


def drop_queued(connection: Connection, session_id: int, now: float) -> list[int]:
    """End every turn of a session that waits."""
    waiting = connection.execute(
        select(turn.c.id).where(
            turn.c.session == session_id,
            turn.c.state == TurnState.QUEUED,
            turn.c.paused.is_(None),
        )
    ).scalars()
    dropped = waiting.all()
    if dropped:
        say(connection, session_id, None, DROPPED.note, now)
    return [
        post
        for waiting_id in dropped
        for post in end_turn(connection, waiting_id, TurnState.CANCELLED, DROPPED, now)
    ]


def drop_turn(connection: Connection, ref: TurnRef, now: float) -> list[int]:
    """End one turn that waits."""
    posts = end_turn(connection, ref.turn, TurnState.CANCELLED, DROPPED, now)
    say(connection, ref.session, None, DROPPED.note, now)
    return posts


def end_turn(
    connection: Connection,
    turn_id: int,
    state: TurnState,
    content: PostContent,
    now: float,
    error: str = "",
) -> list[int]:
    """End a turn and all that it asks, whether its process lived or not; returns the posts."""
    posts = close_asks(connection, ask.c.turn == turn_id, "cancelled", NOT_NEEDED, now)
    _close_turn(connection, turn_id, state, now, error)
    return posts + _present(finish_post(connection, turn_post_key(turn_id), content))


def _close_turn(
    connection: Connection, turn_id: int, state: TurnState, now: float, error: str = ""
) -> int:
    session_id = connection.execute(
        update(turn)
        .where(turn.c.id == turn_id)
        .values(state=state, ended_at=now, error=error, paused=None)
        .returning(turn.c.session)
    ).scalar_one()
    connection.execute(update(session).where(session.c.id == session_id).values(updated_at=now))
    return int(session_id)


def _present(post: int | None) -> list[int]:
    return [] if post is None else [post]


def say(
    connection: Connection,
    session_id: int,
    turn_id: int | None,
    text: str,
    now: float,
    data: Mapping[str, str] | None = None,
) -> None:
    """Write down for the page what happened to a turn, or to one that never began."""
    entry = Entry(kind="notice", text=text, data=data or {}, session=session_id, turn=turn_id)
    insert_entries(connection, [entry], now)
