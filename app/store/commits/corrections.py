"""Applies what people do to messages later: edits and deletions while they wait, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select, update

from app.model.inbound import Changed, Corrected, Rated
from app.model.posts import Note, NoteCode
from app.model.types import Entry, TurnRef, TurnState
from app.store.commits.endings import drop_turn
from app.store.tables import heard, is_place, message, place, post, transcript, turn
from app.store.transcript import insert_entries, insert_in_place

_AT_WORK = (TurnState.STARTING, TurnState.PROMPTED, TurnState.PARKED)


def correct(connection: Connection, changed: Changed, now: float) -> Corrected:
    """Change or drop a message inside the caller's commit, unless an agent got it."""
    found = connection.execute(
        select(message.c.id, message.c.place, message.c.edited)
        .join(place, place.c.id == message.c.place)
        .where(
            is_place(changed.place),
            message.c.message_id == changed.message_id,
            message.c.speaker_id == changed.speaker.id,
        )
    ).first()
    if found is None or found.edited == (changed.text or ""):
        return Corrected("unknown")  # or already applied, through another adapter
    told = connection.execute(
        select(turn.c.session, turn.c.id, turn.c.state)
        .join(heard, heard.c.turn == turn.c.id)
        .where(heard.c.message == found.id)
    ).all()
    refs = tuple(TurnRef(row.session, row.id) for row in told)
    if any(row.state in _AT_WORK for row in told):
        return Corrected("late", refs)
    if any(row.state != TurnState.QUEUED for row in told):
        return Corrected("unknown", refs)  # done: what was answered stays unchanged
    where, name = found.place, changed.speaker.name
    of_message = message.c.id == found.id
    connection.execute(update(message).where(of_message).values(edited=changed.text or ""))
    if changed.text is not None:
        notice = Entry("notice", note=Note(NoteCode.MESSAGE_CHANGED, name, changed.text))
        insert_in_place(connection, where, notice, now)
        return Corrected("changed", refs)
    notice = Entry("notice", note=Note(NoteCode.MESSAGE_TAKEN_BACK, name))
    insert_in_place(connection, where, notice, now)
    return Corrected("dropped", refs, tuple(_take_back(connection, found.id, refs, now)))


def _take_back(
    connection: Connection, number: int, told: Sequence[TurnRef], now: float
) -> list[int]:
    """Remove a message from its waiting turns; drop a turn that has no other message."""
    connection.execute(delete(heard).where(heard.c.message == number))
    posts: list[int] = []
    for ref in told:
        others = select(func.count()).select_from(heard).where(heard.c.turn == ref.turn)
        if not connection.execute(others).scalar():
            posts += drop_turn(connection, ref, now)
    return posts


_CODES = (NoteCode.RATED_GOOD, NoteCode.RATED_BAD)


def rate(connection: Connection, rated: Rated, now: float) -> TurnRef | None:
    """Note a verdict; None if its turn is gone, or if the person's last one was the same."""
    found = connection.execute(
        select(post.c.session, post.c.turn).where(
            post.c.marker == rated.marker,
            post.c.service == rated.place.service,
            post.c.turn.is_not(None),
        )
    ).first()
    if found is None:
        return None
    earlier = connection.execute(
        select(transcript.c.text, transcript.c.data)
        .where(
            transcript.c.turn == found.turn,
            transcript.c.kind == "notice",
            transcript.c.text.in_(_CODES),
        )
        .order_by(transcript.c.id.desc())
    ).all()
    code = NoteCode.RATED_GOOD if rated.is_good else NoteCode.RATED_BAD
    last = next((row.text for row in earlier if row.data.get("rater") == rated.speaker.id), None)
    if last == code:
        return None
    entry = Entry(
        "notice",
        note=Note(code, rated.speaker.name),
        data={"rater": rated.speaker.id},
        session=found.session,
        turn=found.turn,
    )
    insert_entries(connection, [entry], now)
    return TurnRef(found.session, found.turn)
