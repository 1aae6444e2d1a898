"""Gives messages to sessions inside a commit: to the running turn, the waiting one, or a new one.

Words are committed to a running turn before they are sent to its agent. A turn that ends keeps
those that its agent took; the others are queued.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, func, or_, select, update

from app.model.keys import SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.steering import Steered
from app.model.types import OPEN_TURN_STATES, BridgeSessionRequest, Entry, TurnRef, TurnState
from app.store.commits.suspending import SUSPENDED
from app.store.dialects import insert
from app.store.posts import insert_post, turn_post_key
from app.store.tables import heard, message, session, surface, transcript, turn
from app.store.transcript import insert_entries

_WAITING = (
    select(turn.c.id)
    .where(
        turn.c.session == bindparam("of"),
        turn.c.surface == bindparam("asked_in"),
        turn.c.state == "queued",
        turn.c.continued.is_(False),
    )
    .order_by(turn.c.id.desc())
)
_STEERABLE = (
    select(turn.c.id)
    .where(
        turn.c.session == bindparam("of"),
        turn.c.surface == bindparam("asked_in"),
        turn.c.state == TurnState.PROMPTED,
        turn.c.steerable.is_(True),
        turn.c.stopped.is_(False),
    )
    .limit(1)
)
_BUSY = select(turn.c.id).where(
    turn.c.session == bindparam("of"),
    turn.c.id < bindparam("before"),
    or_(*(turn.c.state == state for state in OPEN_TURN_STATES if state != TurnState.PARKED)),
)
_SUSPENDED = select(turn.c.id).where(turn.c.id == bindparam("of"), SUSPENDED)
_AT_HOME = (
    select(session.c.id)
    .join(surface, surface.c.session == session.c.id)
    .where(
        surface.c.place == bindparam("of"),
        session.c.agent == bindparam("agent"),
        session.c.closed.is_(None),
    )
    .order_by(session.c.id.desc())
    .limit(1)
)
_SURFACE = (
    select(surface.c.id, surface.c.session, session.c.closed)
    .join(session)
    .where(
        surface.c.service == bindparam("service"),
        surface.c.external == bindparam("external"),
        surface.c.agent == bindparam("agent"),
    )
)
_HEAR = insert(heard)
_ADD_TURN = insert(turn).returning(turn.c.id)
_ADD_SURFACE = insert(surface).returning(surface.c.id)
_ADD_SESSION = insert(session).returning(session.c.id)
_TOUCH = update(session).where(session.c.id == bindparam("of")).values(updated_at=bindparam("now"))
_RELEASE = (
    update(turn)
    .where(turn.c.session == bindparam("of"), turn.c.state == "queued")
    .values(held=False)
)


def attach(
    connection: Connection,
    request: BridgeSessionRequest,
    place_id: int,
    number: int,
    now: float,
    *,
    alone: bool = False,
) -> tuple[TurnRef, int]:
    """Give a message to a session: to its waiting turn, else to a new one.

    One that is to be answered `alone` always begins a turn.
    """
    surface_id, session_id = _surface(connection, request, place_id, now)
    connection.execute(_TOUCH, {"of": session_id, "now": now})
    # The last waiting turn: after a crash there may be two, and messages keep their order.
    here = {"of": session_id, "asked_in": surface_id}
    waiting = None if alone else connection.execute(_WAITING, here).scalar()
    release(connection, session_id)
    turn_id = waiting or _new_turn(connection, session_id, surface_id, now)
    connection.execute(_HEAR, {"message": number, "session": session_id, "turn": turn_id})
    busy = (
        connection.execute(_BUSY, {"of": session_id, "before": turn_id}).first()
        or connection.execute(_SUSPENDED, {"of": turn_id}).first()
    )
    content = PostContent(
        kind="turn",
        state="queued" if busy else "starting",
        asker=request.speaker.id,
        message_id=request.message_id,
    )
    post_id = insert_post(
        connection,
        NewPost(turn_post_key(turn_id), request.key, content, session_id, turn_id),
        now,
    )
    return TurnRef(session_id, turn_id), post_id


def steer(
    connection: Connection, request: BridgeSessionRequest, place_id: int, number: int, now: float
) -> TurnRef | None:
    """Put a message into the session's running turn; None if that does not take it.

    What was said before it and still waits must not be overtaken.
    """
    if request.while_busy != "steer":
        return None
    surface_id, session_id = _surface(connection, request, place_id, now)
    here = {"of": session_id, "asked_in": surface_id}
    running = connection.execute(_STEERABLE, here).scalar()
    if running is None or connection.execute(_WAITING, here).first() is not None:
        return None
    connection.execute(_TOUCH, {"of": session_id, "now": now})
    steered = {"message": number, "session": session_id, "turn": running}
    connection.execute(_HEAR, {**steered, "steered": Steered.SENT})
    return TurnRef(session_id, running)


def note_taken(connection: Connection, turn_id: int, number: int, now: float) -> None:
    """Note that the agent of a turn has a message."""
    taken = connection.execute(
        update(heard)
        .where(heard.c.turn == turn_id, heard.c.message == number)
        .values(steered=Steered.TAKEN)
        .returning(heard.c.session)
    ).scalar()
    if taken is not None:
        note, data = Note(NoteCode.STEERED), {"message": number}
        entry = Entry("notice", note=note, data=data, session=taken, turn=turn_id)
        insert_entries(connection, [entry], now)


def note_read(connection: Connection, turn_id: int, *states: Steered) -> None:
    """Note that the agent of a turn has read the words that are in these states."""
    connection.execute(
        update(heard)
        .where(heard.c.turn == turn_id, heard.c.steered.in_(states))
        .values(steered=Steered.READ)
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
    next_id = connection.execute(_WAITING, here).scalar()
    if next_id is None:
        next_id = _new_turn(connection, old.session, old.id, now)
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


def enter(connection: Connection, request: BridgeSessionRequest, place_id: int, now: float) -> int:
    """Return the session of a request, which is begun if needed, without a turn."""
    return _surface(connection, request, place_id, now)[1]


def _new_turn(connection: Connection, session_id: int, surface_id: int, now: float) -> int:
    new = {"session": session_id, "surface": surface_id, "created_at": now}
    return int(connection.execute(_ADD_TURN, new).scalar_one())


def _surface(
    connection: Connection, request: BridgeSessionRequest, place_id: int, now: float
) -> tuple[int, int]:
    """Find the session of a request, or start one; a removed session starts a new conversation.

    A new name for a conversation in the same place, such as a later Linear agent session on one
    issue, is a further surface of the session that the agent has there.
    """
    named = {
        "service": request.service_name,
        "external": request.external_session_id,
        "agent": request.agent_name,
    }
    row = connection.execute(_SURFACE, named).first()
    if row is not None:
        if row.closed is not None:
            begin_afresh(connection, row.session)
        return row.id, row.session
    here = {"of": place_id, "agent": request.agent_name}
    session_id = connection.execute(_AT_HOME, here).scalar() or _new_session(
        connection, request, place_id, now
    )
    surface_id = connection.execute(
        _ADD_SURFACE, {**named, "session": session_id, "place": place_id}
    ).scalar_one()
    return surface_id, session_id


def _new_session(
    connection: Connection, request: BridgeSessionRequest, place_id: int, now: float
) -> int:
    new = {
        "agent": request.agent_name,
        "place": place_id,
        "title": request.descriptive_name,
        "created_at": now,
        "updated_at": now,
    }
    return int(connection.execute(_ADD_SESSION, new).scalar_one())


def release(connection: Connection, session_id: int) -> None:
    """Release all held turns of a session."""
    connection.execute(_RELEASE, {"of": session_id})


def begin_afresh(connection: Connection, session_id: int) -> None:
    """Start a new conversation; what was said so far belongs to the former one."""
    last = select(func.coalesce(func.max(transcript.c.id), 0)).scalar_subquery()
    connection.execute(
        update(session)
        .where(session.c.id == session_id)
        .values(
            closed=None,
            acp_session_id=None,
            generation=session.c.generation + 1,
            began_after=last,
            read_others=False,
        )
    )
