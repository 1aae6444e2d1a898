"""Notes people's verdicts on answers with their turns, inside the caller's commit."""

from __future__ import annotations

from sqlalchemy import Connection, select

from app.model.inbound import Rated
from app.model.posts import Note, NoteCode
from app.model.types import Entry, TurnRef
from app.store.tables import post, transcript
from app.store.transcript import insert_entries

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
