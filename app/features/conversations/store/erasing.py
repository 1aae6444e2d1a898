"""Erases conversations: everything that is stored of one, or only what was said in it.

What stays is a hash of each message, so that an event that comes again begins nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    String,
    bindparam,
    cast,
    delete,
    func,
    or_,
    select,
    tuple_,
    update,
)

from app.model.conversations import Holdings
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, Note, PostContent
from app.model.types import Entry
from app.store.commits.admission import begin_afresh
from app.store.decisions import mark_of
from app.store.dialects import insert
from app.store.posts import insert_post
from app.store.record import erase_words
from app.store.sealed import forget_words
from app.store.tables import (
    OPEN_TURN,
    ask,
    checkout,
    decision,
    delegation,
    delivery,
    forgotten,
    grant,
    heard,
    is_place,
    memory_note,
    message,
    place,
    post,
    process,
    review,
    saved_folder,
    schedule,
    session,
    subagent,
    surface,
    told,
    transcript,
    turn,
)
from app.store.transcript import insert_in_place

_CHILDREN = (
    select(delegation.c.session)
    .distinct()
    .join(session, session.c.id == delegation.c.session)
    .join(place, place.c.id == session.c.place)
    .where(delegation.c.root_place == bindparam("of"), place.c.service == SERVICE)
    .where(session.c.place != bindparam("of"))
)
_root = place.alias()
_ROOT_OF = (
    select(_root.c.service, _root.c.name)
    .join(delegation, delegation.c.root_place == _root.c.id)
    .join(session, session.c.id == delegation.c.session)
    .where(session.c.place == bindparam("of"), _root.c.id != bindparam("of"))
    .limit(1)
)
_REMEMBER = insert(forgotten).on_conflict_do_nothing()


@dataclass(frozen=True, slots=True)
class _Scope:
    """The rows that a conversation consists of."""

    own: int
    places: tuple[int, ...]
    sessions: tuple[int, ...]
    children: tuple[int, ...]
    """Those of its sessions in which agents work for agents."""
    keys: tuple[tuple[str, str], ...]
    """Service and name of each conversation as its platform knows it."""

    @property
    def said(self) -> ColumnElement[bool]:
        return or_(transcript.c.place.in_(self.places), transcript.c.session.in_(self.sessions))

    @property
    def posted(self) -> ColumnElement[bool]:
        return or_(
            post.c.session.in_(self.sessions),
            tuple_(post.c.service, post.c.external).in_(self.keys),
        )

    @property
    def scheduled(self) -> ColumnElement[bool]:
        return tuple_(schedule.c.service, schedule.c.external).in_(self.keys)


def holdings(connection: Connection, where: PlaceKey) -> Holdings | None:
    """Tell what is stored of a conversation."""
    scope = _scope(connection, where)
    if scope is None:
        return None
    known = connection.execute(
        select(place.c.service, place.c.name).where(place.c.id.in_(scope.places))
    )
    mine, others = _uploads(connection, scope)
    named = select(session.c.acp_session_id).where(
        session.c.id.in_(scope.sessions), session.c.acp_session_id.is_not(None)
    )
    return Holdings(
        places=tuple(PlaceKey(row.service, row.name) for row in known),
        sessions=scope.sessions,
        children=scope.children,
        conversations=tuple(connection.execute(named).scalars()),
        elsewhere=_owner(connection, scope.own),
        messages=_count(connection, message, message.c.place.in_(scope.places)),
        turns=_count(connection, turn, turn.c.session.in_(scope.sessions)),
        posts=_count(connection, post, scope.posted, post.c.remote_id.is_not(None)),
        schedules=_count(connection, schedule, scope.scheduled),
        uploads=tuple(sorted(mine - others)),
        shared=frozenset(url.partition("/")[0] for url in others),
    )


def clear(connection: Connection, where: PlaceKey, note: Note, now: float) -> list[int] | None:
    """Delete what was said, and let every session of a place start over."""
    scope = _scope(connection, where)
    if scope is None or _is_open(connection, scope):
        return None
    speaker = _speaker(connection, scope)
    _forget(connection, scope, now)
    _erase_sessions(connection, scope.children)
    connection.execute(update(place).where(place.c.id.in_(scope.places)).values(title=""))
    own = [each for each in scope.sessions if each not in scope.children]
    for session_id in own:
        begin_afresh(connection, session_id)
    connection.execute(
        update(session).where(session.c.id.in_(own)).values(title="", standing=None, updated_at=now)
    )
    number = insert_in_place(connection, scope.own, Entry("notice", note=note), now)
    if speaker is None:
        return []
    content = PostContent(kind="notice", reason=note)
    return [insert_post(connection, NewPost(f"clear:{number}", speaker, content), now)]


def erase(connection: Connection, where: PlaceKey, now: float) -> bool:
    """Delete everything that is stored of a conversation."""
    scope = _scope(connection, where)
    if scope is None:
        return True
    if _is_open(connection, scope):
        return False
    _forget(connection, scope, now)
    connection.execute(delete(schedule).where(scope.scheduled))
    _erase_sessions(connection, scope.sessions)
    connection.execute(delete(place).where(place.c.id.in_(scope.places)))
    forks = place.c.forked_from == str(where)
    connection.execute(update(place).where(forks).values(forked_from=None))
    return True


def _erase_sessions(connection: Connection, sessions: Sequence[int]) -> None:
    """Delete sessions, and the places of agents that are theirs."""
    for table in (process, checkout, saved_folder, told, surface):
        connection.execute(delete(table).where(table.c.session.in_(sessions)))
    gone = delete(session).where(session.c.id.in_(sessions)).returning(session.c.place)
    places = list(connection.execute(gone).scalars())
    of_agents = place.c.id.in_(places) & (place.c.service == SERVICE)
    connection.execute(delete(place).where(of_agents))


def _scope(connection: Connection, where: PlaceKey) -> _Scope | None:
    own = connection.execute(select(place.c.id).where(is_place(where))).scalar()
    if own is None:
        return None
    sessions = connection.execute(select(session.c.id).where(session.c.place == own)).scalars()
    children = tuple(connection.execute(_CHILDREN, {"of": own}).scalars())
    mine = tuple(dict.fromkeys((*sessions, *children)))
    surfaces = connection.execute(select(surface).where(surface.c.session.in_(mine))).all()
    strange = select(surface.c.place).where(surface.c.session.not_in(mine))
    shared = set(connection.execute(strange).scalars())
    places = dict.fromkeys((own, *(row.place for row in surfaces if row.place not in shared)))
    keys = dict.fromkeys(
        ((where.service, where.name), *((row.service, row.external) for row in surfaces))
    )
    return _Scope(own, tuple(places), mine, children, tuple(keys))


def _owner(connection: Connection, own: int) -> PlaceKey | None:
    """Find the conversation of a session that is shown in a place, but began elsewhere."""
    row = connection.execute(
        select(place.c.service, place.c.name)
        .join(session, session.c.place == place.c.id)
        .join(surface, surface.c.session == session.c.id)
        .where(surface.c.place == own, session.c.place != own)
    ).first()
    if row is None and _is_of_agents(connection, own):
        row = connection.execute(_ROOT_OF, {"of": own}).first()
    return PlaceKey(row.service, row.name) if row else None


def _is_of_agents(connection: Connection, own: int) -> bool:
    service = connection.execute(select(place.c.service).where(place.c.id == own)).scalar()
    return service == SERVICE


def _speaker(connection: Connection, scope: _Scope) -> SessionKey | None:
    """Return the key of the first session, whose agent tells the place what was done."""
    query = select(surface.c.service, surface.c.external, surface.c.agent).where(
        surface.c.session.in_(scope.sessions)
    )
    row = connection.execute(query.order_by(surface.c.id)).first()
    return SessionKey(*row) if row else None


def _is_open(connection: Connection, scope: _Scope) -> bool:
    still = select(turn.c.id).where(turn.c.session.in_(scope.sessions), OPEN_TURN)
    return connection.execute(still).first() is not None


def _forget(connection: Connection, scope: _Scope, now: float) -> None:
    """Delete what was said and done, and keep a hash of each message.

    The record keeps that it was done, and by whom, without the words of it.
    """
    erase_words(connection, scope.sessions, now)
    _remember(connection, scope, now)
    _empty_deliveries(connection, scope)
    turns = select(turn.c.id).where(turn.c.session.in_(scope.sessions))
    numbers = select(message.c.id).where(message.c.place.in_(scope.places))
    connection.execute(
        delete(heard).where(or_(heard.c.session.in_(scope.sessions), heard.c.message.in_(numbers)))
    )
    forget_words(connection)
    for table in (ask, grant, subagent):
        connection.execute(delete(table).where(table.c.session.in_(scope.sessions)))
    proposed = memory_note.c.state == "proposed"
    connection.execute(
        delete(memory_note).where(memory_note.c.session.in_(scope.sessions), proposed)
    )
    connection.execute(delete(post).where(or_(scope.posted, post.c.turn.in_(turns))))
    _forget_delegations(connection, scope)
    connection.execute(delete(message).where(message.c.place.in_(scope.places)))
    connection.execute(delete(transcript).where(scope.said))
    connection.execute(delete(turn).where(turn.c.session.in_(scope.sessions)))
    connection.execute(delete(decision).where(decision.c.place.in_(scope.places)))


def _forget_delegations(connection: Connection, scope: _Scope) -> None:
    """Delete what agents asked of each other, and what they found in each other's work."""
    mine = (delegation.c.session, delegation.c.caller_session, delegation.c.root_session)
    connection.execute(delete(delegation).where(or_(*(each.in_(scope.sessions) for each in mine))))
    connection.execute(delete(review).where(review.c.session.in_(scope.sessions)))
    of_mine = update(review).where(review.c.author_session.in_(scope.sessions))
    connection.execute(of_mine.values(author_session=None))


def _remember(connection: Connection, scope: _Scope, now: float) -> None:
    for table in (message, decision):
        rows = connection.execute(
            select(place.c.service, place.c.name, table.c.message_id)
            .join(place, place.c.id == table.c.place)
            .where(table.c.place.in_(scope.places))
        ).all()
        marks = [
            {"mark": mark_of(PlaceKey(row.service, row.name), row.message_id), "at": now}
            for row in rows
        ]
        if marks:
            connection.execute(_REMEMBER, marks)


def _empty_deliveries(connection: Connection, scope: _Scope) -> None:
    """Empty the settled events of the services that a conversation is on; their ids stay.

    An event does not say which conversation it belongs to, and no settled one is handled again.
    """
    services = sorted({service for service, _ in scope.keys})
    adapters = or_(*(delivery.c.adapter.startswith(f"{each}:") for each in services))
    settled = delivery.c.state != "new"
    empty = {"headers": {}, "body": b"{}", "reason": ""}
    connection.execute(update(delivery).where(adapters, settled).values(empty))


def _uploads(connection: Connection, scope: _Scope) -> tuple[set[str], set[str]]:
    """Collect the files that a conversation names, and those that others name."""
    mine, others = set[str](), set[str]()
    at = [
        (select(message.c.place, message.c.files), cast(message.c.files, String) != "[]"),
        (
            select(transcript.c.place, transcript.c.data),
            cast(transcript.c.data, String).contains('"files"'),
        ),
    ]
    for query, which in at:
        for where, found in connection.execute(query.where(which)):
            into = mine if where in scope.places else others
            into.update(_urls(found))
    return mine, others


def _urls(found: Iterable[Any]) -> Iterator[str]:
    files = found.get("files") or () if isinstance(found, Mapping) else found
    for file in files:
        if isinstance(file, Mapping) and file.get("url"):
            yield str(file["url"])


def _count(connection: Connection, table: Any, *which: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(table).where(*which)
    return int(connection.execute(query).scalar_one())
