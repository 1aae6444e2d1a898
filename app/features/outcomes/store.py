"""Reads what became of messages from the rows of the pipe; writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, or_, select

from app.model.inbound import DeliveryLine, Reason
from app.model.keys import PlaceKey
from app.model.outcomes import Handling, MessageOutcome, TracedMessage
from app.model.types import Speaker, TurnState
from app.store.database import Store
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    DELIVERY_IS_NEW,
    ask,
    decision,
    delivery,
    heard,
    message,
    place,
    post,
    session,
    transcript,
    turn,
)
from app.store.values import content_of, read_row, turn_error

_SIGNS = ("text", "thought", "tool", "plan", "ask")
"""Rows of a turn by which people see that an agent works."""
_STATES = {
    TurnState.QUEUED: MessageOutcome.QUEUED,
    TurnState.STARTING: MessageOutcome.WORKING,
    TurnState.PROMPTED: MessageOutcome.WORKING,
    TurnState.PARKED: MessageOutcome.WAITING,
    TurnState.DONE: MessageOutcome.ANSWERED,
    TurnState.FAILED: MessageOutcome.FAILED,
    TurnState.CANCELLED: MessageOutcome.STOPPED,
}
_AGENTS_ASK = select(func.count()).where(ask.c.turn == turn.c.id, ASK_IS_OPEN, ASK_HOLDS)
_FIRST_SIGN = (
    select(transcript.c.at)
    .where(
        transcript.c.session == heard.c.session,
        transcript.c.id > heard.c.message,
        transcript.c.turn == heard.c.turn,
        transcript.c.kind.in_(_SIGNS),
    )
    .order_by(transcript.c.id)
    .limit(1)
)
_other = heard.alias("other")
_FIRST_MESSAGE = select(func.min(_other.c.message)).where(_other.c.turn == heard.c.turn)
TRACED: Select[Any] = (
    select(
        decision,
        place.c.service,
        place.c.name,
        message.c.id.label("number"),
        message.c.speaker_id,
        message.c.speaker_kind,
        message.c.link,
        transcript.c.speaker,
        transcript.c.data,
        delivery.c.adapter,
        delivery.c.received_at,
        delivery.c.delivery_id,
        delivery.c.sent_at.label("looked_for"),
    )
    .join(place, place.c.id == decision.c.place)
    .join(
        message,
        (message.c.place == decision.c.place) & (message.c.message_id == decision.c.message_id),
    )
    .join(transcript, transcript.c.id == message.c.id)
    .outerjoin(delivery, delivery.c.seq == decision.c.delivery)
)
_HANDLED: Select[Any] = (
    select(
        session.c.agent,
        heard.c.turn,
        heard.c.steered,
        turn.c.state,
        turn.c.created_at,
        turn.c.ended_at,
        turn.c.error,
        _FIRST_SIGN.scalar_subquery().label("first_sign_at"),
        _FIRST_MESSAGE.scalar_subquery().label("first_message"),
        _AGENTS_ASK.scalar_subquery().label("asks"),
    )
    .join(session, session.c.id == heard.c.session)
    .outerjoin(turn, turn.c.id == heard.c.turn)
    .where(heard.c.message == bindparam("of"))
    .order_by(session.c.agent)
)
_SHOWN = 50
"""Waiting deliveries that are listed: more of them have one cause."""
_NEWEST = decision.c.at.desc()


class OutcomeStore(Store):
    """The outcomes port."""

    async def find(self, text: str) -> TracedMessage | None:
        """Find the newest message by its link, its id, or the id of its delivery."""
        named = (message.c.link == text, message.c.message_id == text)
        return await self._one(TRACED.where(or_(*named, delivery.c.delivery_id == text)))

    async def at(self, where: PlaceKey, message_id: str) -> TracedMessage | None:
        """Return a message of a place by the platform's id of it."""
        this = place.c.service == where.service, place.c.name == where.name
        return await self._one(TRACED.where(*this, decision.c.message_id == message_id))

    async def before(self, where: PlaceKey, message_id: str) -> TracedMessage | None:
        """Return the last message of a place that is not this one, and no command `why`."""
        this = place.c.service == where.service, place.c.name == where.name
        others = decision.c.message_id != message_id, decision.c.reason != "command why"
        return await self._one(TRACED.where(*this, *others))

    async def since(self, at: float, *, limit: int) -> Sequence[TracedMessage]:
        """List the messages that were decided on since a time, newest first."""

        def read(connection: Connection) -> list[TracedMessage]:
            query = TRACED.where(decision.c.at >= at).order_by(_NEWEST).limit(limit)
            return [_traced(connection, row) for row in connection.execute(query).all()]

        return await self._database.read(read)

    async def of_turn(self, turn_id: int) -> Sequence[TracedMessage]:
        """List the messages that became part of a turn."""

        def read(connection: Connection) -> list[TracedMessage]:
            mine = select(heard.c.message).where(heard.c.turn == turn_id)
            query = TRACED.where(message.c.id.in_(mine)).order_by(message.c.id)
            return [_traced(connection, row) for row in connection.execute(query).all()]

        return await self._database.read(read)

    async def undecided(self, before: float) -> Sequence[DeliveryLine]:
        """List what arrived before a time and is not decided on, oldest first."""
        shown = (delivery.c[name] for name in DeliveryLine.__slots__)
        query = select(*shown).where(DELIVERY_IS_NEW, delivery.c.received_at < before)
        rows = await self._database.all(query.order_by(delivery.c.seq).limit(_SHOWN))
        return [read_row(DeliveryLine, row) for row in rows]

    async def _one(self, query: Select[Any]) -> TracedMessage | None:
        def read(connection: Connection) -> TracedMessage | None:
            row = connection.execute(query.order_by(_NEWEST).limit(1)).first()
            if row is None:
                return None
            found = _traced(connection, row)
            is_told = found.outcome in {MessageOutcome.REFUSED, MessageOutcome.FAILED}
            told = is_told and not found.handlings
            return replace(found, why=_told(connection, row)) if told else found

        return await self._database.read(read)


def _traced(connection: Connection, row: Row[Any]) -> TracedMessage:
    handled = connection.execute(_HANDLED, {"of": row.number}).all()
    handlings = tuple(_handling(each, row.number) for each in handled if each.turn is not None)
    return TracedMessage(
        place=PlaceKey(row.service, row.name),
        message_id=row.message_id,
        speaker=Speaker(row.speaker_id, row.speaker, row.speaker_kind),
        link=row.link,
        adapter=row.adapter or "",
        sent_at=row.sent_at or row.looked_for,
        received_at=row.received_at,
        decided_at=row.at,
        outcome=_outcome(row, handlings),
        rule=row.reason,
        late=row.looked_for is not None,
        handlings=handlings,
    )


def _handling(row: Row[Any], number: int) -> Handling:
    outcome = _STATES[TurnState(row.state)]
    if outcome is MessageOutcome.WORKING and row.asks:
        outcome = MessageOutcome.WAITING
    if outcome is MessageOutcome.ANSWERED and row.steered:
        outcome = MessageOutcome.STEERED
    elif outcome is MessageOutcome.ANSWERED and row.first_message != number:
        outcome = MessageOutcome.JOINED
    return Handling(
        agent=row.agent,
        outcome=outcome,
        turn=row.turn,
        queued_at=row.created_at,
        first_sign_at=row.first_sign_at,
        ended_at=row.ended_at,
        error=turn_error(row.error) if row.error else "",
    )


def _outcome(row: Row[Any], handlings: Sequence[Handling]) -> MessageOutcome:
    """Tell what became of a message as a whole: the least done of what agents made of it."""
    if handlings:
        order = list(MessageOutcome)
        return max((each.outcome for each in handlings), key=order.index)
    if row.outcome in {"refused", "failed"}:
        return MessageOutcome(row.outcome)
    is_deed = row.reason.startswith("command ") or row.reason == Reason.ANSWERS_ASK
    return MessageOutcome.CARRIED_OUT if is_deed or row.agents else MessageOutcome.NOBODY_MEANT


def _told(connection: Connection, row: Row[Any]) -> str:
    """Find what the place was told when a message was refused; one refusal counts for many."""
    notice = f"notice:{PlaceKey(row.service, row.name)}:{row.message_id}:"
    own = post.c.key.startswith(notice, autoescape=True)
    refused = post.c.key.startswith(f"refusal:{row.service}:", autoescape=True)
    by_speaker = refused & post.c.key.endswith(f":{row.speaker_id}", autoescape=True)
    query = select(post.c.content).where(or_(own, by_speaker)).order_by(post.c.id.desc()).limit(1)
    content = connection.execute(query).scalar()
    return "" if content is None else content_of(content).note
