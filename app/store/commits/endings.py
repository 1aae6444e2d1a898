"""Ends turns inside the caller's commit: stopped, dropped, given up or continued in another.

A turn's asks end with it, its post shows people how it ended, and schedules count how runs ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from sqlalchemy import ColumnElement, Connection, insert, select, update

from app.model.inbound import RUN, PauseReason
from app.model.keys import SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.steering import Steered
from app.model.types import Entry, TurnRef, TurnState
from app.store.commits.asks import (
    close_asks,
    leave_questions,
    outlives,
    present,
    target_of,
    tell_unused_answers,
)
from app.store.commits.steering import hand_back, note_read
from app.store.posts import address_like, end_post, finish_post, insert_post, turn_post_key
from app.store.sealed import forget_words
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    ASK_STAYS,
    OPEN_TURN,
    ask,
    delegation,
    heard,
    message,
    place,
    schedule,
    session,
    turn,
)
from app.store.transcript import insert_entries, insert_in_place

RUNNING = (TurnState.STARTING, TurnState.PROMPTED)
IN_THE_WAY = turn.c.state.in_(RUNNING) | turn.c.paused.is_not(None)
"""Turns that block the ones behind them."""
STOPPED = Note(NoteCode.STOPPED)
DROPPED = Note(NoteCode.DROPPED)
NOT_NEEDED = Note(NoteCode.NOT_NEEDED)


def stop_running(connection: Connection, session_id: int, now: float) -> list[int]:
    """Stop the running, paused or parked turn, if any; waiting turns are not touched."""
    posts = end_parked(connection, session_id, now)
    running = connection.execute(
        select(turn.c.id).where(turn.c.session == session_id, IN_THE_WAY)
    ).first()
    return posts if running is None else posts + stop_session(connection, session_id, now)


def hand_over(connection: Connection, session_id: int, now: float) -> list[int]:
    """Stop what blocks the waiting turns; one of them may have started since the last check."""
    of_session = turn.c.session == session_id
    waiting = connection.execute(
        select(turn.c.id).where(
            of_session, turn.c.state == TurnState.QUEUED, turn.c.paused.is_(None)
        )
    ).first()
    running = connection.execute(select(turn.c.id).where(of_session, IN_THE_WAY)).first()
    return stop_session(connection, session_id, now, parked=False) if waiting and running else []


def end_parked(connection: Connection, session_id: int, now: float) -> list[int]:
    """End the turns that wait for an answer without a process."""
    parked = connection.execute(
        select(turn.c.id).where(turn.c.session == session_id, turn.c.state == TurnState.PARKED)
    )
    return [
        post
        for turn_id in parked.scalars().all()
        for post in (
            *end_waiting(connection, turn_id, STOPPED, now),
            *stop_delegations(connection, delegation.c.caller_turn == turn_id, now),
        )
    ]


def end_waiting(
    connection: Connection,
    turn_id: int,
    note: Note,
    now: float,
    state: Literal[TurnState.CANCELLED, TurnState.DONE] = TurnState.CANCELLED,
) -> list[int]:
    """End a turn that waits for people, with what it has shown so far."""
    posts = close_asks(connection, ask.c.turn == turn_id, "cancelled", note, now)
    session_id = _close_turn(connection, turn_id, state, now)
    say(connection, session_id, turn_id, note, now)
    shown = "done" if state is TurnState.DONE else "stopped"
    return posts + present(end_post(connection, turn_post_key(turn_id), shown, note))


def end_if_idle(
    connection: Connection,
    turn_id: int,
    state: Literal[TurnState.CANCELLED, TurnState.DONE],
    note: Note,
    now: float,
) -> list[int]:
    """End a turn without a process once it no longer waits for an answer."""
    row = connection.execute(select(turn).where(turn.c.id == turn_id)).one()
    still = select(ask.c.id).where(ask.c.turn == turn_id, ASK_IS_OPEN, ASK_HOLDS)
    is_idle = row.state == TurnState.PARKED or row.paused is not None
    if not is_idle or connection.execute(still).first() is not None:
        return []
    return end_waiting(connection, turn_id, note, now, state)


def go_on_after(
    connection: Connection, turn_id: int, note: Note, now: float
) -> tuple[TurnRef, list[int]]:
    """End a parked turn and start the one that continues its work; return it and the posts.

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
    for of_turn in (delegation.c.turn, delegation.c.caller_turn, delegation.c.root_turn):
        connection.execute(update(delegation).where(of_turn == turn_id).values({of_turn: new_id}))
    ended = end_post(connection, turn_post_key(turn_id), "done", note)
    begun = NewPost(
        turn_post_key(new_id),
        target_of(connection, turn_id),
        address_like(
            connection, turn_post_key(turn_id), PostContent(kind="turn", state="starting")
        ),
        old.session,
        new_id,
    )
    return TurnRef(old.session, new_id), [*present(ended), insert_post(connection, begun, now)]


def stop_session(
    connection: Connection, session_id: int, now: float, *, parked: bool = True
) -> list[int]:
    """Mark the running turn as stopped and hold waiting ones; end an unstarted or parked one."""
    of_session = turn.c.session == session_id
    ended = end_parked(connection, session_id, now) if parked else []
    first = connection.execute(
        select(turn.c.id, turn.c.state, turn.c.paused)
        .where(of_session, turn.c.state.in_((*RUNNING, TurnState.QUEUED)))
        .order_by(turn.c.id)
    ).first()
    if first is not None:
        connection.execute(
            update(turn)
            .where(of_session, turn.c.state == TurnState.QUEUED, turn.c.id != first.id)
            .values(held=True)
        )
        ended += stop_turn(connection, first.id, now)
    return ended + stop_delegations(connection, delegation.c.caller_session == session_id, now)


def stop_turn(connection: Connection, turn_id: int, now: float) -> list[int]:
    """Stop one open turn, and all that agents were asked for by it."""
    row = connection.execute(select(turn).where(turn.c.id == turn_id)).one()
    posts: list[int] = []
    if row.state in RUNNING:
        connection.execute(update(turn).where(turn.c.id == turn_id).values(stopped=True))
    elif row.paused is not None or row.state == TurnState.PARKED:
        posts = end_waiting(connection, turn_id, STOPPED, now)
    elif row.state == TurnState.QUEUED:
        posts = end_turn(connection, turn_id, TurnState.CANCELLED, ended_by(STOPPED), now)
        # A turn that never started has no rows, and its notice must not split another turn's rows.
        say(connection, row.session, None, STOPPED, now)
    return posts + stop_delegations(connection, delegation.c.caller_turn == turn_id, now)


def stop_delegations(connection: Connection, which: ColumnElement[bool], now: float) -> list[int]:
    """Stop what agents were asked for and have not finished, and all that this led to."""
    still = connection.execute(
        select(delegation.c.turn)
        .join(turn, turn.c.id == delegation.c.turn)
        .where(which, OPEN_TURN, turn.c.stopped.is_(False))
    )
    return [post for each in still.scalars().all() for post in stop_turn(connection, each, now)]


def drop_queued(connection: Connection, session_id: int, now: float) -> list[int]:
    """End every waiting turn of a session."""
    waiting = connection.execute(
        select(turn.c.id).where(
            turn.c.session == session_id,
            turn.c.state == TurnState.QUEUED,
            turn.c.paused.is_(None),
        )
    ).scalars()
    dropped = waiting.all()
    if dropped:
        say(connection, session_id, None, DROPPED, now)
    return [
        post
        for waiting_id in dropped
        for post in end_turn(connection, waiting_id, TurnState.CANCELLED, ended_by(DROPPED), now)
    ]


def tell_waiting(connection: Connection, session_id: int, words: str, now: float) -> list[int]:
    """Say something in every conversation in which a turn of a session is open."""
    waiting = connection.execute(
        select(turn.c.id).where(turn.c.session == session_id, turn.c.ended_at.is_(None))
    ).scalars()
    targets = dict.fromkeys(target_of(connection, turn_id) for turn_id in waiting.all())
    if targets:
        insert_entries(connection, [Entry("notice", words, session=session_id)], now)
    content = PostContent(kind="notice", note=words)
    return [
        insert_post(connection, NewPost(f"told:{session_id}:{target}", target, content), now)
        for target in targets
    ]


def drop_turn(connection: Connection, ref: TurnRef, now: float) -> list[int]:
    """End one waiting turn."""
    posts = end_turn(connection, ref.turn, TurnState.CANCELLED, ended_by(DROPPED), now)
    say(connection, ref.session, None, DROPPED, now)
    return posts


def ended_by(note: Note, state: str = "stopped") -> PostContent:
    """Build the post content that says why a turn ended."""
    return PostContent(kind="turn", state=state, reason=note)


def end_turn(
    connection: Connection,
    turn_id: int,
    state: TurnState,
    content: PostContent,
    now: float,
    error: str = "",
    *,
    unsure: Collection[int] | None = None,
) -> list[int]:
    """End a turn and its asks, with or without a process; return the posts.

    `unsure` are messages that were sent into it and of which its agent said nothing; None if it
    is not known which were sent.
    """
    stays = state is TurnState.DONE and outlives(connection, turn_id)
    which = ask.c.turn == turn_id
    if stays:
        leave_questions(connection, which)
        which &= ~ASK_STAYS
    posts = close_asks(connection, which, "cancelled", NOT_NEEDED, now)
    _close_turn(connection, turn_id, state, now, error)
    posts += present(finish_post(connection, turn_post_key(turn_id), content))
    posts += tell_unused_answers(connection, turn_id, now) if stays else []
    if state is TurnState.DONE:
        note_read(connection, turn_id, Steered.TAKEN)
    held = state is TurnState.CANCELLED
    posts += hand_back(connection, turn_id, now, unsure=unsure, held=held)
    return posts + count_runs(connection, turn_id, state, now)


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
    forget_words(connection)
    return int(session_id)


def say(
    connection: Connection,
    session_id: int,
    turn_id: int | None,
    note: Note,
    now: float,
    data: Mapping[str, str] | None = None,
) -> None:
    """Add a notice for the page of what happened to a turn, started or not."""
    entry = Entry(kind="notice", note=note, data=data or {}, session=session_id, turn=turn_id)
    insert_entries(connection, [entry], now)


MOST_FAILURES = 3
"""Failures in a row that pause a schedule: one may be chance, three are not."""


def count_runs(connection: Connection, turn_id: int, state: TurnState, now: float) -> list[int]:
    """Count a turn that ended for the schedules it ran for; return the posts."""
    runs = connection.execute(
        select(message.c.message_id)
        .join(heard, heard.c.message == message.c.id)
        .where(heard.c.turn == turn_id, message.c.message_id.startswith(RUN))
    ).scalars()
    numbers = sorted({int(name.split(":")[1]) for name in runs})
    if state is TurnState.DONE and numbers:
        done = update(schedule).where(schedule.c.id.in_(numbers))
        connection.execute(done.values(failures=0))
    if state is not TurnState.FAILED:
        return []
    return [post for number in numbers for post in count_failure(connection, number, now)]


def count_failure(connection: Connection, schedule_id: int, now: float) -> list[int]:
    """Count a run that failed or was refused; pause its schedule if that is one too many."""
    row = connection.execute(
        update(schedule)
        .where(schedule.c.id == schedule_id)
        .values(failures=schedule.c.failures + 1)
        .returning(*schedule.c)
    ).first()
    if row is None or row.state != "active" or row.failures < MOST_FAILURES:
        return []
    connection.execute(
        update(schedule)
        .where(schedule.c.id == schedule_id)
        .values(state="paused", reason=PauseReason.FAILURES)
    )
    note = Note(NoteCode.SCHEDULE_FAILED, about=str(schedule_id))
    there = select(place.c.id).where(place.c.service == row.service, place.c.name == row.place)
    if (place_id := connection.execute(there).scalar()) is not None:
        insert_in_place(connection, place_id, Entry("notice", note=note), now)
    target = SessionKey(row.service, row.external, row.agent)
    content = PostContent(kind="notice", reason=note)
    key = f"schedule-failed:{schedule_id}:{now!r}"
    return [insert_post(connection, NewPost(key, target, content), now)]
