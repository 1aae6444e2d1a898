"""Settles offers inside the caller's commit: taken, declined, superseded or handed on.

An offer is not part of a turn's work: it outlives the turn that shows it, and starts another.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from app.model.asks import TAKE, text_of
from app.model.keys import PlaceKey
from app.model.posts import Note, NoteCode
from app.model.types import BridgeSessionRequest, Entry, Speaker, TurnRef
from app.store.commits.admission import attach
from app.store.commits.asks import close_ask
from app.store.tables import ASK_IS_OPEN, OFFER, ask, checkout, message, place, surface, turn
from app.store.transcript import insert_in_place

HANDED_ON = Note(NoteCode.OFFER_HANDED_ON)


def open_offers(connection: Connection, session_id: int) -> list[Row[Any]]:
    """List a session's open offers."""
    mine = select(ask).where(ask.c.session == session_id, ASK_IS_OPEN, ask.c.kind == "offer")
    return list(connection.execute(mine.order_by(ask.c.id)))


def withdraw_offers(connection: Connection, session_id: int, note: Note, now: float) -> list[int]:
    """Withdraw a session's offers; return the posts that say so."""
    return [
        post
        for row in open_offers(connection, session_id)
        for post in close_ask(connection, row, {"state": "cancelled"}, note, now)
    ]


def hand_on_offers(connection: Connection, session_id: int, number: int, now: float) -> list[int]:
    """Add the open offers to a message as context: its author has seen them."""
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
    """Start the turn of an offer, if it is taken; return it and the post to send."""
    if answer != TAKE:
        return [], []
    shown = connection.execute(
        select(surface, place.c.name)
        .join(turn, turn.c.surface == surface.c.id)
        .join(place, place.c.id == surface.c.place)
        .where(turn.c.id == row.turn)
    ).one()
    deed = next(option["name"] for option in row.options if option["id"] == TAKE)
    request = BridgeSessionRequest(
        external_session_id=shown.external,
        service_name=shown.service,
        agent_name=shown.agent,
        prompt=f"{deed}.",
        speaker=Speaker(speaker, by),
        message_id="",  # there is no message to answer
        surface=PlaceKey(shown.service, shown.name),
    )
    number = _say(connection, row, shown.place, request, now)
    ref, post = attach(connection, request, shown.place, number, now)
    mine = (checkout.c.session == row.session) & (checkout.c.branch == row.call)
    connection.execute(update(checkout).where(mine).values(tries=checkout.c.tries + 1))
    return [ref], [post]


def _say(
    connection: Connection,
    row: Row[Any],
    place_id: int,
    request: BridgeSessionRequest,
    now: float,
) -> int:
    """Store the message of a taken offer: its action as text, its subject as data."""
    data = {"files": [], "to": [request.agent_name]}
    said = Entry("message", request.prompt, request.speaker.name, data)
    number = insert_in_place(connection, place_id, said, now)
    connection.execute(
        insert(message),
        {
            "id": number,
            "place": place_id,
            "message_id": f"{OFFER}{row.id}",
            "speaker_id": request.speaker.id or request.speaker.name,
            "speaker_kind": request.speaker.kind,
            "files": [],
            "context": text_of(row.title, row.subject),
        },
    )
    return number
