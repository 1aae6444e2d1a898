"""Recovers turns that a crash or a shutdown cut off, inside the caller's commit."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select, update

from app.model.posts import Note, NoteCode
from app.model.types import TurnState
from app.store.commits.asks import close_asks, leave_questions
from app.store.commits.endings import RUNNING, STOPPED, end_turn, ended_by, say
from app.store.commits.subagents import settle_subagents
from app.store.tables import ask, subagent, turn

CUT_TWICE = Note(NoteCode.CUT_OFF_TWICE)
CUT_ONCE = Note(NoteCode.CUT_OFF)
OWN_CUT = Note(NoteCode.OWN_TURN_CUT)
ASK_LOST = Note(NoteCode.ASK_LOST)


def recover_turns(connection: Connection, which: ColumnElement[bool], now: float) -> list[int]:
    """Recover those of these turns that were cut off; return the posts to send."""
    running = turn.c.state.in_(RUNNING) & which
    lost = ask.c.turn.in_(select(turn.c.id).where(running))
    leave_questions(connection, lost)
    posts = close_asks(connection, lost & ask.c.adrift.is_(False), "lost", ASK_LOST, now)
    begun = subagent.c.turn.in_(select(turn.c.id).where(which))
    settle_subagents(connection, begun, "lost", now)
    for row in connection.execute(select(turn).where(running).order_by(turn.c.id)).all():
        posts += _recover(connection, row, now)
    return posts


def requeue_interrupted(connection: Connection, row: Row[Any], now: float) -> None:
    """Put back a turn that a graceful shutdown cut off; this does not count as a crash."""
    if row.stopped or _is_own(row):
        _recover(connection, row, now)
    else:
        _requeue(connection, row, now, cuts=row.cuts)


def _recover(connection: Connection, row: Row[Any], now: float) -> list[int]:
    """Decide what becomes of one turn that was cut off."""
    posts: list[int] = []
    if row.stopped:
        posts = end_turn(connection, row.id, TurnState.CANCELLED, ended_by(STOPPED), now)
        say(connection, row.session, row.id, STOPPED, now)
    elif _is_own(row):
        # What the agent was doing ended with its process, and no prompt could begin it again.
        content = ended_by(OWN_CUT, "failed")
        posts = end_turn(connection, row.id, TurnState.FAILED, content, now, OWN_CUT.code)
        say(connection, row.session, row.id, OWN_CUT, now, {"end": "failed"})
    elif row.state == TurnState.PROMPTED and row.cuts:
        content = ended_by(CUT_TWICE, "failed")
        posts = end_turn(connection, row.id, TurnState.FAILED, content, now, CUT_TWICE.code)
        say(connection, row.session, row.id, CUT_TWICE, now, {"end": "failed"})
    else:
        _requeue(connection, row, now, cuts=row.cuts + (row.state == TurnState.PROMPTED))
    return posts


def _is_own(row: Row[Any]) -> bool:
    return row.woken_by is not None and not row.continued


def _requeue(connection: Connection, row: Row[Any], now: float, *, cuts: int) -> None:
    reached = row.state == TurnState.PROMPTED
    connection.execute(
        update(turn)
        .where(turn.c.id == row.id)
        .values(state=TurnState.QUEUED, cuts=cuts, continued=row.continued or reached)
    )
    if reached:
        say(connection, row.session, row.id, CUT_ONCE, now)
