"""Stores the outcome of each message in one commit, and reads what is known of its place."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from app.model.asks import TakenAnswer
from app.model.inbound import Accepted, Changed, Corrected, Decision, Effect, Heard, Rated, Reason
from app.model.keys import AreaOf, PlaceKey
from app.model.posts import Note, NoteCode
from app.model.types import BridgeSessionRequest, Entry, PlaceView, TurnRef
from app.store.commits.admission import (
    attach,
    begin_afresh,
    choose,
    hold,
    pin,
    release,
    remember,
    tell_suspended,
)
from app.store.commits.asks import hand_on_offers, take_along
from app.store.commits.corrections import correct, rate
from app.store.commits.endings import (
    count_failure,
    drop_queued,
    hand_over,
    stop_running,
    stop_session,
    tell_waiting,
)
from app.store.commits.steering import steer
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.inbox import settle
from app.store.ledger import answer_ask, settle_choices
from app.store.posts import insert_post
from app.store.sealed import keep_words
from app.store.tables import (
    decision,
    forgotten,
    heard,
    message,
    place,
    session,
    surface,
    transcript,
)
from app.store.transcript import insert_in_place
from app.store.values import read_row

OPERATOR = "the operator"

_PLACE = select(place).where(
    place.c.service == bindparam("service"), place.c.name == bindparam("name")
)
_DECIDE = insert(decision).on_conflict_do_nothing()
_ADD_PLACE = insert(place).returning(place.c.id)
_ADD_MESSAGE = insert(message)
_DECIDED = (
    select(decision.c.place)
    .join(place)
    .where(
        place.c.service == bindparam("service"),
        place.c.name == bindparam("name"),
        decision.c.message_id == bindparam("message"),
    )
)
_KNOWN = select(message.c.id).where(
    message.c.place == bindparam("where"), message.c.message_id == bindparam("name")
)
_PRESENT = (
    select(session.c.agent)
    .distinct()
    .join(surface, surface.c.session == session.c.id)
    .where(surface.c.place == bindparam("of"), session.c.closed.is_(None))
    .order_by(session.c.agent)
)
_LATEST = update(place).where(place.c.id == bindparam("of")).values(latest=bindparam("agent"))


class IntakeStore(Store):
    """The intake port."""

    def decided(self, where: PlaceKey, message_id: str) -> bool:
        """Tell whether this message was decided on before, by any adapter."""
        named = {"service": where.service, "name": where.name}

        def read(connection: Connection) -> bool:
            known = connection.execute(_DECIDED, {**named, "message": message_id}).first()
            return known is not None or _is_forgotten(connection, where, message_id)

        return self._database.look(read)

    def place(self, where: PlaceKey) -> PlaceView:
        """Return who is in a place."""

        def read(connection: Connection) -> PlaceView:
            row = _place_row(connection, where)
            if row is None:
                return PlaceView()
            present = connection.execute(_PRESENT, {"of": row.id}).scalars()
            is_fork = row.forked_from is not None
            return read_row(PlaceView, row, present=tuple(present), is_fork=is_fork)

        return self._database.look(read)

    @write
    def accept(self, connection: Connection, made: Decision) -> Accepted:
        """Write all that follows from one message."""
        return _accept(connection, made, self._now(), self._area_of)

    @write
    def correct(self, connection: Connection, seq: int, changed: Changed) -> Corrected:
        """Edit or drop a waiting message, and settle the delivery."""
        corrected = correct(connection, changed, self._now())
        settle(connection, seq, "done", f"edited: {corrected.outcome}")
        return corrected

    @write
    def rate(self, connection: Connection, seq: int, rated: Rated) -> TurnRef | None:
        """Note a verdict with its turn, and settle the delivery."""
        noted = rate(connection, rated, self._now())
        settle(connection, seq, "done", Reason.RATED if noted is not None else Reason.NOTHING_NEW)
        return noted

    @write
    def change(
        self, connection: Connection, where: PlaceKey, effects: Sequence[Effect]
    ) -> Sequence[int]:
        """Write an operator's change; return the posts to send."""
        row = _place_row(connection, where)
        assert row is not None, "a session has its place"
        place_id = row.id
        now = self._now()
        return [
            post
            for effect in effects
            for post in _apply(
                connection, effect, place_id, now, by=OPERATOR, area_of=self._area_of
            )
        ]

    @write
    def pin(self, connection: Connection, where: PlaceKey, repository: str) -> str:
        """Give a place its repository if it has none; return the one it has."""
        return pin(connection, where, repository)


def _accept(connection: Connection, made: Decision, now: float, area_of: AreaOf) -> Accepted:
    place_id = place_of(connection, made.heard)
    fresh = connection.execute(
        _DECIDE,
        {
            "place": place_id,
            "message_id": made.heard.message_id,
            "outcome": made.outcome,
            "reason": made.reason,
            "agents": [request.agent_name for request in made.requests],
            "at": now,
            "delivery": made.delivery or None,
            "sent_at": made.heard.said_at,
        },
    ).rowcount
    if not fresh or _is_known(connection, place_id, made.heard):
        settle(connection, made.delivery, "done", Reason.DECIDED_BEFORE)
        return Accepted(repeated=True)
    number = _message(connection, place_id, made, now)
    posts = [insert_post(connection, new, now) for new in made.before]
    speaker = made.heard.speaker.name
    for effect in made.effects:
        posts.extend(_apply(connection, effect, place_id, now, by=speaker, area_of=area_of))
    answers, unheard = _answer(connection, made, number, now, area_of)
    _note_answers(connection, made, number, answers)
    requests = (*made.requests, *unheard)
    turns = []
    for request in requests:
        ref = steer(connection, request, place_id, number, now)
        if ref is None:
            ref, post = attach(connection, request, place_id, number, now)
            posts.append(post)
            if made.heard.sent_at is None:
                posts.extend(take_along(connection, ref.turn, now))
        turns.append(ref)
        posts.extend(hand_on_offers(connection, ref.session, number, now))
    posts.extend(post for taken in answers for post in taken.posts)
    posts.extend(insert_post(connection, new, now) for new in made.posts)
    for new in made.posts:
        said = Entry("notice", new.content.note, new.target.agent)
        insert_in_place(connection, place_id, said, now)
    if made.silence:
        note = Note(NoteCode.NOBODY_ANSWERS, about=made.silence)
        silence = Entry("notice", note=note, data={"silence": made.silence})
        insert_in_place(connection, place_id, silence, now)
    if requests:
        latest = requests[-1].agent_name
        connection.execute(_LATEST, {"of": place_id, "agent": latest})
    if made.heard.schedule is not None and made.outcome != "done":
        posts.extend(count_failure(connection, made.heard.schedule, now))
    settle(connection, made.delivery, made.outcome, made.reason)
    begun = (ref for taken in answers for ref in taken.turns)
    refs = (*turns, *begun)
    posts.extend(tell_suspended(connection, [ref.turn for ref in refs], now))
    answered = tuple(number for taken in answers for number in taken.asks)
    return Accepted(refs, tuple(posts), answered=answered)


def _answer(
    connection: Connection, made: Decision, number: int, now: float, area_of: AreaOf
) -> tuple[list[TakenAnswer], list[BridgeSessionRequest]]:
    """Answer the asks that a message answers; return what is left to tell agents.

    The message belongs to their sessions, but to none of their turns.
    """
    taken: list[TakenAnswer] = []
    unheard: list[BridgeSessionRequest] = []
    for answer in made.answers:
        speaker = made.heard.speaker
        outcome = answer_ask(
            connection,
            answer.ask,
            answer.answer,
            speaker.name,
            now,
            speaker=speaker.id,
            area_of=area_of,
        )
        if outcome is None:
            unheard += () if answer.also_told else (answer.request,)
            continue
        taken.append(outcome)
        for session_id in () if answer.also_told else outcome.sessions:
            row = {"message": number, "session": session_id, "turn": None}
            connection.execute(insert(heard).on_conflict_do_nothing(), row)
    return taken, unheard


def _note_answers(
    connection: Connection, made: Decision, number: int, taken: Sequence[TakenAnswer]
) -> None:
    """Note with a message which asks it answered, if it is nothing but their answer."""
    only = {answer.ask for answer in made.answers if not answer.also_told}
    asks = [ask for each in taken for ask in each.asks if ask in only]
    if asks:
        data = {**_message_data(made), "answers": asks}
        connection.execute(update(transcript).where(transcript.c.id == number).values(data=data))


def _is_known(connection: Connection, place_id: int, said: Heard) -> bool:
    """Tell whether a message is stored, or was; decisions are deleted sooner than messages."""
    known = connection.execute(_KNOWN, {"where": place_id, "name": said.message_id})
    return known.first() is not None or _is_forgotten(connection, said.place, said.message_id)


def _place_row(connection: Connection, where: PlaceKey) -> Row[Any] | None:
    named = {"service": where.service, "name": where.name}
    return connection.execute(_PLACE, named).first()


def place_of(connection: Connection, said: Heard) -> int:
    """Return the place of a message, which is made if needed."""
    row = _place_row(connection, said.place)
    if row is not None:
        if row.archived_at is not None or not row.title:
            renewed = {"archived_at": None, "title": row.title or said.title}
            connection.execute(update(place).where(place.c.id == row.id).values(renewed))
        return int(row.id)
    new = {
        "service": said.place.service,
        "name": said.place.name,
        "title": said.title,
        "link": said.link,
    }
    return int(connection.execute(_ADD_PLACE, new).scalar_one())


def _message(connection: Connection, place_id: int, made: Decision, now: float) -> int:
    said, data = made.heard, _message_data(made)
    entry = Entry("message", said.text, said.speaker.name, data)
    number = insert_in_place(connection, place_id, entry, now)
    connection.execute(
        _ADD_MESSAGE,
        {
            "id": number,
            "place": place_id,
            "message_id": said.message_id,
            "speaker_id": said.speaker.id,
            "speaker_kind": said.speaker.kind,
            "speaker_number": said.speaker.number,
            "link": said.link,
            "files": data["files"],
            "pointed": said.pointed,
            "context": said.context,
            "sent_at": said.sent_at,
        },
    )
    keep_words(connection, number, said.text, now)
    return number


def _message_data(made: Decision) -> dict[str, Any]:
    to = (*made.requests, *(each.request for each in made.answers if not each.also_told))
    data: dict[str, Any] = {
        "files": [asdict(file) for file in made.heard.files],
        "to": [request.agent_name for request in to],
    }
    if made.heard.repeats is not None:
        data["repeats"] = asdict(made.heard.repeats)
    if made.heard.schedule is not None:
        data["schedule"] = made.heard.schedule
    return data


def _apply(
    connection: Connection,
    effect: Effect,
    place_id: int,
    now: float,
    *,
    by: str,
    area_of: AreaOf,
) -> list[int]:
    """Make a command's lasting change; return the posts it finished."""
    if effect.session is None:
        return _apply_to_place(connection, effect, place_id, now, by=by, area_of=area_of)
    of_session = session.c.id == effect.session
    match effect.kind:
        case "stop":
            return stop_session(connection, effect.session, now)
        case "make way":
            return stop_running(connection, effect.session, now)
        case "hand over":
            return hand_over(connection, effect.session, now)
        case "drop":
            return drop_queued(connection, effect.session, now)
        case "tell":
            return tell_waiting(connection, effect.session, effect.value, now)
        case "release":
            release(connection, effect.session)
        case "fresh":
            begin_afresh(connection, effect.session)
        case "mode" | "model":
            connection.execute(
                update(session).where(of_session).values({effect.kind: effect.value})
            )
    return []


def _apply_to_place(
    connection: Connection,
    effect: Effect,
    place_id: int,
    now: float,
    *,
    by: str,
    area_of: AreaOf,
) -> list[int]:
    match effect.kind:
        case "repository":
            choose(connection, place_id, effect.value)
            return list(settle_choices(connection, place_id, effect.value, by, now).posts)
        case "remember":
            remember(connection, place_id, effect.value, area_of)
        case "hold":
            hold(connection, place_id, effect.value)
            if effect.told:
                note = Note(NoteCode.HANDED_OVER, by, effect.told)
                insert_in_place(connection, place_id, Entry("notice", note=note), now)
        case "listen" | "verbosity":
            own = {"holder": None, "predecessor": None} if effect.kind == "listen" else {}
            change = {effect.kind: effect.value, **own}
            connection.execute(update(place).where(place.c.id == place_id).values(change))
    return []


def mark_of(where: PlaceKey, message_id: str) -> str:
    """Return what is kept of a message whose conversation was erased."""
    return hashlib.sha256(f"{where.service}\n{where.name}\n{message_id}".encode()).hexdigest()


def _is_forgotten(connection: Connection, where: PlaceKey, message_id: str) -> bool:
    """Tell whether a message belonged to a conversation that was erased."""
    query = select(forgotten.c.mark).where(forgotten.c.mark == mark_of(where, message_id))
    return connection.execute(query).first() is not None
