"""Gives late answers to agents inside the caller's commit: each begins a turn, once.

Only questions that an agent asked with a tool of the bridge outlive the turn that asked.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Integer, cast, insert, select, update

from app.model.delegation import ANSWERS, SERVICE
from app.model.keys import PlaceKey
from app.model.types import BridgeSessionRequest, Entry, Speaker, TurnRef
from app.store.commits.admission import attach
from app.store.dialects import JsonField
from app.store.tables import (
    ANSWER,
    ASK_IS_OPEN,
    ASK_STAYS,
    ask,
    message,
    place,
    surface,
    transcript,
    turn,
)
from app.store.transcript import insert_in_place
from app.store.values import ask_of


def leave_questions(connection: Connection, which: ColumnElement[bool]) -> None:
    """Let nothing wait for the open questions among these asks; they stay open."""
    connection.execute(update(ask).where(which, ASK_IS_OPEN, ASK_STAYS).values(adrift=True))


def outlives(connection: Connection, turn_id: int) -> bool:
    """Tell whether the questions of a turn stay open when it is done.

    What an agent does for another agent ends with its turn, and so do its questions.
    """
    where = select(surface.c.service).join(turn, turn.c.surface == surface.c.id)
    service = connection.execute(where.where(turn.c.id == turn_id)).scalar_one()
    return str(service) != SERVICE


def tell_unused_answers(connection: Connection, turn_id: int, now: float) -> list[int]:
    """Begin turns for the answers that came during a turn and that its agent did not read."""
    told = select(turn.c.told).where(turn.c.id == turn_id).scalar_subquery()
    since = select(cast(JsonField(transcript.c.data, "ask"), Integer)).where(
        transcript.c.turn == turn_id, transcript.c.kind == "ask", transcript.c.id > told
    )
    unused = connection.execute(
        select(ask.c.id)
        .where(ask.c.turn == turn_id, ask.c.state == "answered", ask.c.adrift.is_(True), ASK_STAYS)
        .where(ask.c.id.in_(since.correlate(None)))
        .order_by(ask.c.id)
    )
    return [tell_answer(connection, ask_id, now)[1] for ask_id in unused.scalars().all()]


def tell_answer(connection: Connection, ask_id: int, now: float) -> tuple[TurnRef, int]:
    """Begin a turn with the answer to a question; return it and the post to send."""
    row = connection.execute(select(ask).where(ask.c.id == ask_id)).one()
    asked = ask_of(row)
    shown = connection.execute(
        select(surface, place.c.name)
        .join(turn, turn.c.surface == surface.c.id)
        .join(place, place.c.id == surface.c.place)
        .where(turn.c.id == row.turn)
    ).one()
    request = BridgeSessionRequest(
        external_session_id=shown.external,
        service_name=shown.service,
        agent_name=shown.agent,
        prompt=asked.answer_name,
        speaker=Speaker(row.speaker, asked.answered_by or ""),
        message_id="",  # there is no message to answer
        surface=PlaceKey(shown.service, shown.name),
    )
    data = {"files": [], "to": [shown.agent], "answers": [ask_id]}
    said = Entry("message", request.prompt, request.speaker.name, data)
    number = insert_in_place(connection, shown.place, said, now)
    connection.execute(
        insert(message),
        {
            "id": number,
            "place": shown.place,
            "message_id": f"{ANSWER}{ask_id}",
            "speaker_id": request.speaker.id or request.speaker.name,
            "speaker_kind": request.speaker.kind,
            "files": [],
            "pointed": ANSWERS.format(question=asked.title),
        },
    )
    connection.execute(update(ask).where(ask.c.id == ask_id).values(adrift=False))
    return attach(connection, request, shown.place, number, now)
