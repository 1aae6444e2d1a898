"""Gives messages to sessions, and places to agents, inside the caller's commit.

A message goes to the waiting turn of its session, else to a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, and_, bindparam, exists, func, literal, or_, select, update

from app.model.delegation import SERVICE
from app.model.keys import AreaOf, PlaceKey, SessionKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import OPEN_TURN_STATES, BridgeSessionRequest, Entry, TurnRef, TurnState
from app.store.dialects import insert
from app.store.posts import insert_post, turn_post_key
from app.store.tables import (
    checkout,
    heard,
    is_place,
    place,
    post,
    session,
    surface,
    suspension,
    transcript,
    turn,
)
from app.store.transcript import insert_entries

ALL: Final = "all"
AGENT: Final = "agent:"
PLACE: Final = "place:"
PAUSED: Final = Note(NoteCode.SUSPENDED)

_paused_surface, _paused_place = surface.alias("paused_surface"), place.alias("paused_place")
_NAME = literal(PLACE) + _paused_place.c.service + ":" + _paused_place.c.name
_IN_SCOPE = or_(
    suspension.c.scope == literal(AGENT) + _paused_surface.c.agent,
    and_(
        # A turn that agents wait for may begin, so that theirs can end.
        _paused_place.c.service != SERVICE,
        or_(
            suspension.c.scope == ALL,
            suspension.c.scope == _NAME,
            # A channel holds its threads, and a repository its issues.
            func.substr(_NAME, 1, func.length(suspension.c.scope) + 1) == suspension.c.scope + ":",
        ),
    ),
)
_OF_TURN = (
    select(
        _paused_surface.c.service,
        _paused_surface.c.external,
        _paused_surface.c.agent,
        suspension.c.since,
    )
    .select_from(_paused_surface)
    .join(_paused_place, _paused_place.c.id == _paused_surface.c.place)
    .join(suspension, _IN_SCOPE)
)
SUSPENDED = exists(_OF_TURN.where(_paused_surface.c.id == turn.c.surface).correlate(turn))
"""Whether a row of `turn` is paused by the operator."""
_FIRST = (
    _OF_TURN.add_columns(turn.c.session)
    .join(turn, turn.c.surface == _paused_surface.c.id)
    .where(turn.c.id == bindparam("of"))
    .order_by(suspension.c.since)
    .limit(1)
)


def tell_suspended(connection: Connection, turns: Sequence[int], now: float) -> list[int]:
    """Tell people that turns wait for the operator, once per conversation and pause."""
    posts: list[int] = []
    for turn_id in turns:
        row = connection.execute(_FIRST, {"of": turn_id}).first()
        if row is None or row.service == SERVICE:
            continue
        key = SessionKey(row.service, row.external, row.agent)
        name = f"paused:{row.since}:{key}"
        if connection.execute(select(post.c.id).where(post.c.key == name)).first() is None:
            content = PostContent(kind="notice", reason=PAUSED)
            posts.append(insert_post(connection, NewPost(name, key, content, row.session), now))
            insert_entries(connection, [Entry("notice", note=PAUSED, session=row.session)], now)
    return posts


WAITING = (
    select(turn.c.id)
    .where(
        turn.c.session == bindparam("of"),
        turn.c.surface == bindparam("asked_in"),
        turn.c.state == "queued",
        turn.c.continued.is_(False),
        turn.c.woken_by.is_(None),
    )
    .order_by(turn.c.id.desc())
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
    surface_id, session_id = find_surface(connection, request, place_id, now)
    connection.execute(_TOUCH, {"of": session_id, "now": now})
    # The last waiting turn: after a crash there may be two, and messages keep their order.
    here = {"of": session_id, "asked_in": surface_id}
    waiting = None if alone else connection.execute(WAITING, here).scalar()
    release(connection, session_id)
    turn_id = waiting or begin_turn(connection, session_id, surface_id, now)
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


def enter(connection: Connection, request: BridgeSessionRequest, place_id: int, now: float) -> int:
    """Return the session of a request, which is begun if needed, without a turn."""
    return find_surface(connection, request, place_id, now)[1]


def begin_turn(connection: Connection, session_id: int, surface_id: int, now: float) -> int:
    """Add a turn to the queue of a session."""
    new = {"session": session_id, "surface": surface_id, "created_at": now}
    return int(connection.execute(_ADD_TURN, new).scalar_one())


def find_surface(
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


def hold(connection: Connection, place_id: int, agent: str) -> None:
    """Give a place to an agent inside the caller's commit; no change if it has the place."""
    here = place.c.id == place_id
    before = connection.execute(select(place.c.holder).where(here)).scalar_one()
    if before == agent:
        return
    # Not the one addressed last: that may have been a reviewer.
    worked = (
        select(session.c.agent)
        .join(checkout, checkout.c.session == session.c.id)
        .join(surface, surface.c.session == session.c.id)
        .where(surface.c.place == place_id, session.c.agent != agent, checkout.c.branch != "")
        .order_by((session.c.agent == (before or "")).desc(), session.c.updated_at.desc())
        .limit(1)
    )
    predecessor = connection.execute(worked).scalar()
    connection.execute(update(place).where(here).values(holder=agent, predecessor=predecessor))


def remove_session(connection: Connection, session_id: int) -> None:
    """Remove an agent from its place inside the caller's commit; it no longer holds the place."""
    gone = update(session).where(session.c.id == session_id).values(closed="removed")
    row = connection.execute(gone.returning(session.c.place, session.c.agent)).one()
    held = (place.c.id == row.place) & (place.c.holder == row.agent)
    connection.execute(update(place).where(held).values(holder=None, predecessor=None))


def choose(connection: Connection, place_id: int, repository: str) -> None:
    """Give a place its repository."""
    connection.execute(update(place).where(place.c.id == place_id).values(repository=repository))


def remember(connection: Connection, place_id: int, repository: str, area_of: AreaOf) -> None:
    """Make a repository the default for new places of the same area, if it has one."""
    row = connection.execute(
        select(place.c.service, place.c.name).where(place.c.id == place_id)
    ).one()
    area = area_of(PlaceKey(row.service, row.name))
    if area is None:
        return
    kept = {"service": area.service, "name": area.name, "repository": repository}
    connection.execute(
        insert(place).on_conflict_do_update(
            index_elements=[place.c.service, place.c.name], set_={"repository": repository}
        ),
        kept,
    )


def pin(connection: Connection, where: PlaceKey, repository: str) -> str:
    """Give a place its repository if it has none; return the one it has."""
    first = func.coalesce(place.c.repository, repository)
    chosen = connection.execute(
        update(place).where(is_place(where)).values(repository=first).returning(place.c.repository)
    )
    return str(chosen.scalar_one())
