"""Writes what becomes of offers inside somebody's commit: taken, left, overtaken, or handed on.

An offer belongs to no turn's work: it outlives the turn that it is shown with, and begins another.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from app.core.consent.offers import TAKE, text_of
from app.core.keys import SessionKey
from app.core.posts import NewPost, PostContent
from app.core.types import OPEN_TURN_STATES, TurnRef, TurnState
from app.store.asks import close_ask
from app.store.posts import insert_post, turn_post_key
from app.store.tables import (
    ASK_IS_OPEN,
    ask,
    checkout,
    heard,
    message,
    session,
    surface,
    transcript,
    turn,
)

HANDED_ON = "Something else was asked; the agent is told of this with it."
BUSY = [state for state in OPEN_TURN_STATES if state != TurnState.PARKED]


def open_offers(connection: Connection, session_id: int) -> list[Row[Any]]:
    """List the offers of a session that stand."""
    mine = select(ask).where(ask.c.session == session_id, ASK_IS_OPEN, ask.c.kind == "offer")
    return list(connection.execute(mine.order_by(ask.c.id)))


def withdraw_offers(connection: Connection, session_id: int, note: str, now: float) -> list[int]:
    """Take back the offers of a session; returns the posts that say so."""
    return [
        post
        for row in open_offers(connection, session_id)
        for post in close_ask(connection, row, {"state": "cancelled"}, note, now)
    ]


def hand_on_offers(connection: Connection, session_id: int, number: int, now: float) -> list[int]:
    """Let a message bring along what was offered: whoever writes it knows of that."""
    offered = open_offers(connection, session_id)
    if not offered:
        return []
    this = message.c.id == number
    context = connection.execute(select(message.c.context).where(this)).scalar_one()
    texts = [text_of(row.title, row.subject) for row in offered]
    joined = "\n\n".join(filter(None, (context, *texts)))
    connection.execute(update(message).where(this).values(context=joined))
    return withdraw_offers(connection, session_id, HANDED_ON, now)


def decide_offer(
    connection: Connection, row: Row[Any], answer: str, by: str, speaker: str, now: float
) -> tuple[list[TurnRef], list[int]]:
    """Begin the turn that an offer is about, if it is taken; returns it and the post to send."""
    if answer != TAKE:
        return [], []
    shown = connection.execute(
        select(surface).join(turn, turn.c.surface == surface.c.id).where(turn.c.id == row.turn)
    ).one()
    number = _say(connection, row, shown, by, speaker or by, now)
    busy = connection.execute(
        select(turn.c.id).where(turn.c.session == row.session, turn.c.state.in_(BUSY))
    ).first()
    of_session = turn.c.session == row.session
    connection.execute(update(turn).where(of_session, turn.c.held.is_(True)).values(held=False))
    new = {"session": row.session, "surface": shown.id, "created_at": now}
    turn_id = connection.execute(insert(turn).returning(turn.c.id), new).scalar_one()
    told = {"message": number, "session": row.session, "turn": turn_id}
    connection.execute(insert(heard), told)
    connection.execute(update(session).where(session.c.id == row.session).values(updated_at=now))
    mine = (checkout.c.session == row.session) & (checkout.c.branch == row.call)
    connection.execute(update(checkout).where(mine).values(tries=checkout.c.tries + 1))
    state = "queued" if busy else "starting"
    post = NewPost(
        turn_post_key(turn_id),
        SessionKey(shown.service, shown.external, shown.agent),
        PostContent(kind="turn", state=state, asker=speaker),
        row.session,
        turn_id,
    )
    return [TurnRef(row.session, turn_id)], [insert_post(connection, post, now)]


def _say(
    connection: Connection,
    row: Row[Any],
    shown: Row[Any],
    by: str,
    speaker: str,
    now: float,
) -> int:
    """Keep what taking an offer says: its deed in words, and what it is about as data."""
    deed = next(option["name"] for option in row.options if option["id"] == TAKE)
    said = {
        "place": shown.place,
        "kind": "message",
        "speaker": by,
        "text": f"{deed}.",
        "data": {"files": [], "to": [shown.agent]},
        "at": now,
    }
    added = insert(transcript).returning(transcript.c.id)
    number = int(connection.execute(added, said).scalar_one())
    connection.execute(
        insert(message),
        {
            "id": number,
            "place": shown.place,
            "message_id": f"offer-{row.id}",
            "speaker_id": speaker,
            "speaker_kind": "person",
            "files": [],
            "context": text_of(row.title, row.subject),
        },
    )
    return number
