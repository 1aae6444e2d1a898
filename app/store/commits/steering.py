"""Puts messages into running turns and takes them out again, inside the caller's commit.

Words are committed to a turn before they are sent to its agent. Those that are said while it starts
are told with its prompt. A turn that ends keeps those that its agent took; the others are queued.
"""

from __future__ import annotations

from collections.abc import Collection
from textwrap import shorten
from typing import Final

from sqlalchemy import Connection, and_, bindparam, or_, select, update

from app.model.keys import SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.steering import Steered
from app.model.types import BridgeSessionRequest, Entry, TurnRef, TurnState
from app.store.commits.admission import WAITING, begin_turn, find_surface
from app.store.dialects import insert
from app.store.posts import insert_post, turn_post_key
from app.store.tables import heard, message, session, surface, transcript, turn
from app.store.transcript import insert_entries

WORDS_CHARACTERS: Final = 80
"""How much of a message is repeated where it was taken: enough to know which one it is."""

_STARTS = and_(
    turn.c.state == TurnState.STARTING,
    turn.c.continued.is_(False),
    turn.c.woken_by.is_(None),  # it gets no prompt
)
_STEERABLE = (
    select(turn.c.id, turn.c.state)
    .where(
        turn.c.session == bindparam("of"),
        turn.c.surface == bindparam("asked_in"),
        or_(_STARTS, and_(turn.c.state == TurnState.PROMPTED, turn.c.steerable.is_(True))),
        turn.c.stopped.is_(False),
    )
    .limit(1)
)
_HEAR = insert(heard)


def steer(
    connection: Connection, request: BridgeSessionRequest, place_id: int, number: int, now: float
) -> TurnRef | None:
    """Put a message into the session's running turn; None if that does not take it.

    What was said before it and still waits must not be overtaken.
    """
    if request.while_busy != "steer":
        return None
    surface_id, session_id = find_surface(connection, request, place_id, now)
    here = {"of": session_id, "asked_in": surface_id}
    running = connection.execute(_STEERABLE, here).first()
    if running is None or connection.execute(WAITING, here).first() is not None:
        return None
    connection.execute(update(session).where(session.c.id == session_id).values(updated_at=now))
    steered = Steered.JOINED if running.state == TurnState.STARTING else Steered.SENT
    said = {"message": number, "session": session_id, "turn": running.id}
    connection.execute(_HEAR, {**said, "steered": steered})
    return TurnRef(session_id, running.id)


def note_taken(connection: Connection, turn_id: int, number: int, now: float) -> None:
    """Note that the agent of a turn has a message."""
    taken = connection.execute(
        update(heard)
        .where(heard.c.turn == turn_id, heard.c.message == number)
        .values(steered=Steered.TAKEN)
        .returning(heard.c.session)
    ).scalar()
    if taken is not None:
        said = connection.execute(select(transcript.c.text).where(transcript.c.id == number))
        words = shorten(said.scalar_one(), WORDS_CHARACTERS, placeholder=" …")
        note, data = Note(NoteCode.STEERED, about=words), {"message": number}
        entry = Entry("notice", note=note, data=data, session=taken, turn=turn_id)
        insert_entries(connection, [entry], now)


def note_read(connection: Connection, turn_id: int, *states: Steered) -> None:
    """Note that the agent of a turn has read the words that are in these states."""
    connection.execute(
        update(heard)
        .where(heard.c.turn == turn_id, heard.c.steered.in_(states))
        .values(steered=Steered.READ)
    )


def settle_steered(
    connection: Connection, turn_id: int, told: Collection[int], read: Collection[int]
) -> None:
    """Settle what the agent of a turn knows once it is prompted: what it was told, and had read.

    What was said after the prompt was written is on its way.
    """
    joined = and_(heard.c.steered == Steered.JOINED, heard.c.message.not_in(told))
    for those, steered in (
        (heard.c.message.in_(told), None),
        (heard.c.message.in_(read), Steered.READ),
        (joined, Steered.SENT),
    ):
        connection.execute(
            update(heard).where(heard.c.turn == turn_id, those).values(steered=steered)
        )


def hand_back(
    connection: Connection,
    turn_id: int,
    now: float,
    *,
    only: Collection[int] | None = None,
    unsure: Collection[int] | None = (),
    held: bool = False,
) -> list[int]:
    """Queue the messages that the agent of a turn did not take; return the posts to send.

    Those of which it is `unsure` whether the agent has them are looked for before they are sent;
    None: all of them.
    """
    untaken = (
        select(message.c.id, message.c.message_id, message.c.speaker_id)
        .join(heard, heard.c.message == message.c.id)
        .where(heard.c.turn == turn_id, heard.c.steered == Steered.SENT)
        .order_by(message.c.id)
    )
    rows = connection.execute(untaken).all()
    back = [row for row in rows if only is None or row.id in only]
    if not back:
        return []
    old = connection.execute(
        select(turn.c.session, surface)
        .join(surface, surface.c.id == turn.c.surface)
        .where(turn.c.id == turn_id)
    ).one()
    here = {"of": old.session, "asked_in": old.id}
    next_id = connection.execute(WAITING, here).scalar()
    if next_id is None:
        next_id = begin_turn(connection, old.session, old.id, now)
        connection.execute(update(turn).where(turn.c.id == next_id).values(held=held))
    for row in back:
        connection.execute(
            update(heard)
            .where(heard.c.turn == turn_id, heard.c.message == row.id)
            .values(
                turn=next_id,
                steered=Steered.SENT if unsure is None or row.id in unsure else None,
            )
        )
    content = PostContent(
        kind="turn",
        state="queued",
        asker=back[0].speaker_id,
        message_id=back[0].message_id,
    )
    target = SessionKey(old.service, old.external, old.agent)
    post = NewPost(turn_post_key(next_id), target, content, old.session, next_id)
    return [insert_post(connection, post, now)]
