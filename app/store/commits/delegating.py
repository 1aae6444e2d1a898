"""Begins delegations: a place, a session, a message and a turn, with the row of the delegation.

The limits are counted in the commit that begins one, so that no two calls pass them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, exists, func, select

from app.model.delegation import (
    SERVICE,
    Delegation,
    DelegationLimits,
    NewDelegation,
    StartedDelegation,
    TreeCounts,
    find_reached,
)
from app.model.inbound import RUN
from app.model.keys import PlaceKey
from app.model.posts import NewPost, Note, NoteCode, PostContent
from app.model.types import BridgeSessionRequest, Entry, Speaker, TurnState
from app.store.commits.admission import attach
from app.store.commits.asks import target_of
from app.store.dialects import find_next_number, insert
from app.store.posts import insert_post
from app.store.sealed import keep_words
from app.store.tables import (
    OFFER,
    OPEN_TURN,
    delegation,
    message,
    place,
    session,
    surface,
    told,
    transcript,
    turn,
)
from app.store.transcript import insert_in_place

HOUR_SECONDS = 3600.0
TITLE_CHARACTERS = 80
"""How much of a task is the title of the place where it is done."""

_own, _own_place, _earlier = session.alias(), place.alias(), delegation.alias()
_IS_FIRST = ~exists().where(
    _earlier.c.session == delegation.c.session, _earlier.c.id < delegation.c.id
)
EACH = (
    select(
        delegation,
        turn.c.state,
        turn.c.ended_at,
        _own.c.title,
        _own_place.c.named,
        ((_own_place.c.service == SERVICE) & _IS_FIRST).label("created"),
    )
    .join(turn, turn.c.id == delegation.c.turn)
    .join(_own, _own.c.id == delegation.c.session)
    .join(_own_place, _own_place.c.id == _own.c.place)
)
ONE = EACH.where(delegation.c.id == bindparam("of"))
OF_TURN = EACH.where(delegation.c.turn == bindparam("of"))
BY_TURN = EACH.where(delegation.c.caller_turn == bindparam("of")).order_by(delegation.c.id)
IN_GROUP = EACH.where(delegation.c.group == bindparam("of")).order_by(delegation.c.id)
_CALLER = select(turn, surface.c.place).join(surface, surface.c.id == turn.c.surface)
_LAST_SURFACE = (
    select(surface, place.c.name, session.c.title)
    .join(place, place.c.id == surface.c.place)
    .join(session, session.c.id == surface.c.session)
    .outerjoin(turn, turn.c.surface == surface.c.id)
    .where(surface.c.session == bindparam("of"))
    .order_by(turn.c.id.desc().nulls_last())
    .limit(1)
)
_LAST_WORD = (
    select(transcript.c.id, transcript.c.at)
    .join(message, message.c.id == transcript.c.id)
    .where(
        transcript.c.place == bindparam("of"),
        message.c.speaker_kind == "person",
        message.c.message_id.not_like(f"{OFFER}%"),
        message.c.message_id.not_like(f"{RUN}%"),
    )
    .order_by(transcript.c.id.desc())
    .limit(1)
)
_USAGE = (
    select(transcript.c.session, transcript.c.turn, transcript.c.data)
    .where(transcript.c.kind == "usage")
    .order_by(transcript.c.id)
)


def delegation_of(row: Row[Any]) -> Delegation:
    """Read a delegation with the state of its turn."""
    return Delegation(
        id=row.id,
        kind=row.kind,
        agent=row.agent,
        caller_session=row.caller_session,
        caller_turn=row.caller_turn,
        session=row.session,
        turn=row.turn,
        root_session=row.root_session,
        root_turn=row.root_turn,
        depth=row.depth,
        task=row.task,
        state=TurnState(row.state),
        person=Speaker(row.person_id, row.person_name, number=row.person_number),
        name=row.name,
        workspace=row.workspace,
        group=row.group,
        round=row.round,
        told=row.told_at is not None,
        created_at=row.created_at,
        ended_at=row.ended_at,
        title=row.named or row.title,
        created=bool(row.created),
    )


def begin(
    connection: Connection, new: NewDelegation, limits: DelegationLimits, now: float
) -> StartedDelegation:
    """Begin a delegation, unless a limit is reached or the same call began it before."""
    caller = _caller(connection, new)
    if caller is not None and caller.continued and (known := _find_same(connection, new)):
        return StartedDelegation(known, is_known=True)
    first = _first_of_group(connection, new)
    parent = None
    if first is None and new.caller_turn is not None:  # people work for no one
        parent = connection.execute(OF_TURN, {"of": new.caller_turn}).first()
    root = _root(connection, new, caller, first or parent)
    said = connection.execute(_LAST_WORD, {"of": root["root_place"]}).first()
    counts = _count_tree(connection, new, root, parent, said.at if said else 0.0, now, limits)
    if limit := find_reached(counts, new.agent, limits):
        mark = f"limit:{limit}:{root['root_turn'] or 0}:{said.id if said else 0}"
        return StartedDelegation(None, limit, posts=tell_limit(connection, root, limit, mark, now))
    depth = counts.depth if first is None else first.depth
    place_id, request = _address(connection, new)
    number = _say(connection, place_id, request, new.context, now)
    ref, post = attach(connection, request, place_id, number, now, alone=True)
    row = {
        "kind": new.kind,
        "agent": new.agent,
        "caller_session": new.caller_session,
        "caller_turn": new.caller_turn,
        "session": ref.session,
        "turn": ref.turn,
        "depth": depth,
        "task": new.task,
        "name": new.name,
        "workspace": new.workspace,
        "branch": new.branch,
        "folder": new.folder,
        "group": new.group,
        "round": new.round,
        "person_id": new.person.id,
        "person_name": new.person.name,
        "person_number": new.person.number,
        "created_at": now,
        **root,
    }
    made = connection.execute(insert(delegation).values(row).returning(delegation.c.id))
    found = connection.execute(ONE, {"of": made.scalar_one()}).one()
    return StartedDelegation(delegation_of(found), posts=(post,))


def list_open_trees(connection: Connection) -> list[tuple[dict[str, int | None], float]]:
    """List the trees with open work, and since when each has gone on.

    That is since its first delegation, or since a person last said something in its place.
    """
    roots = (delegation.c.root_place, delegation.c.root_session, delegation.c.root_turn)
    still = turn.c.id == delegation.c.turn
    rows = connection.execute(
        select(*roots).join(turn, still).where(OPEN_TURN, turn.c.stopped.is_(False)).distinct()
    ).all()
    trees: list[tuple[dict[str, int | None], float]] = []
    for row in rows:
        root = {column.name: value for column, value in zip(roots, row, strict=True)}
        first = connection.execute(
            select(func.min(delegation.c.created_at)).where(in_tree(root))
        ).scalar_one()
        said = connection.execute(_LAST_WORD, {"of": row.root_place}).first()
        trees.append((root, max(first, said.at if said else 0.0)))
    return trees


def _caller(connection: Connection, new: NewDelegation) -> Row[Any] | None:
    """Read the turn that asks."""
    if new.caller_turn is None:
        return None
    return connection.execute(_CALLER.where(turn.c.id == new.caller_turn)).one()


def _find_same(connection: Connection, new: NewDelegation) -> Delegation | None:
    """Find what the same call of a turn began before the turn was cut off."""
    rows = connection.execute(BY_TURN, {"of": new.caller_turn}).all()
    says = attrgetter("kind", "agent", "task", "name", "workspace", "branch", "folder")
    return next((delegation_of(row) for row in rows if says(row) == says(new)), None)


def _first_of_group(connection: Connection, new: NewDelegation) -> Row[Any] | None:
    """Find the delegation that the bridge goes on with: a later one is as deep as the first."""
    if not new.group or new.caller_turn is not None:
        return None
    return connection.execute(IN_GROUP, {"of": new.group}).first()


def _root(
    connection: Connection, new: NewDelegation, caller: Row[Any] | None, parent: Row[Any] | None
) -> dict[str, int | None]:
    """Tell where it all began."""
    if parent is not None:
        return {
            "root_place": parent.root_place,
            "root_session": parent.root_session,
            "root_turn": parent.root_turn,
        }
    of_session = select(session.c.place).where(session.c.id == new.caller_session)
    where = connection.execute(of_session).scalar_one() if caller is None else caller.place
    return {
        "root_place": where,
        "root_session": new.caller_session,
        "root_turn": new.caller_turn,
    }


def in_tree(root: Mapping[str, int | None]) -> ColumnElement[bool]:
    """Select the delegations that one message of a person led to."""
    return (delegation.c.root_session == root["root_session"]) & (
        delegation.c.root_turn.is_not_distinct_from(root["root_turn"])
    )


def _count_tree(
    connection: Connection,
    new: NewDelegation,
    root: Mapping[str, int | None],
    parent: Row[Any] | None,
    since: float,
    now: float,
    limits: DelegationLimits,
) -> TreeCounts:
    """Count how far agents have gone since a person last said something in the root place."""
    begun = delegation.c.created_at >= since
    hour = delegation.c.created_at > now - HOUR_SECONDS
    here = delegation.c.root_place == root["root_place"]
    mine = delegation.c.caller_turn == new.caller_turn
    first = select(func.min(delegation.c.created_at)).where(in_tree(root), begun)
    began = connection.execute(first).scalar()
    usd = 0.0 if limits.usd is None else _spent(connection, root)
    return TreeCounts(
        agents=_chain(connection, new, parent),
        depth=1 if parent is None else parent.depth + 1,
        by_turn=_count(connection, mine, begun) if new.caller_turn is not None else 0,
        in_tree=_count(connection, in_tree(root), begun),
        in_hour=_count(connection, here, begun, hour),
        seconds=0.0 if began is None else now - began,
        usd=usd,
    )


def _chain(connection: Connection, new: NewDelegation, parent: Row[Any] | None) -> frozenset[str]:
    """List the agents that led to a call; none if it is the bridge itself that goes on."""
    sessions: list[int] = []
    asker = select(session.c.agent).where(session.c.id == new.caller_session)
    if new.kind == "spawn" and connection.execute(asker).scalar_one() == new.agent:
        return frozenset()  # a further session of itself closes no circle
    if new.caller_turn is not None:
        sessions.append(new.caller_session)
        while parent is not None:
            sessions.append(parent.caller_session)
            above = {"of": parent.caller_turn}
            asked = parent.caller_turn is not None
            parent = connection.execute(OF_TURN, above).first() if asked else None
    query = select(session.c.agent).where(session.c.id.in_(sessions))
    return frozenset(connection.execute(query).scalars())


def _count(connection: Connection, *which: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(delegation).where(*which)
    return int(connection.execute(query).scalar_one())


def _spent(connection: Connection, root: Mapping[str, int | None]) -> float:
    """Tell what a tree has cost: the turn that began it, and all that it led to."""
    rows = connection.execute(
        select(delegation.c.session, delegation.c.turn).where(in_tree(root))
    ).all()
    turns = {root["root_turn"], *(row.turn for row in rows)}
    by_turn = costs(connection, {root["root_session"], *(row.session for row in rows)})
    return sum(usd for number, usd in by_turn.items() if number in turns)


def costs(connection: Connection, sessions: Iterable[int | None]) -> dict[int, float]:
    """Tell what each turn of sessions cost in dollars, as far as agents report it.

    They report the cost of their conversation so far.
    """
    by_turn: dict[int, float] = {}
    reported: dict[int, float] = {}
    for row in connection.execute(_USAGE.where(transcript.c.session.in_(list(sessions)))):
        cost = row.data.get("cost")
        if cost is None or row.data.get("currency") not in {None, "USD"}:
            continue
        before = reported.get(row.session, 0.0)
        grown = cost - before if cost >= before else cost
        by_turn[row.turn] = by_turn.get(row.turn, 0.0) + grown
        reported[row.session] = cost
    return by_turn


def tell_limit(
    connection: Connection, root: Mapping[str, int | None], limit: str, mark: str, now: float
) -> tuple[int, ...]:
    """Tell people once that a limit is reached."""
    row = {"session": root["root_session"], "mark": mark}
    if not connection.execute(insert(told).values(row).on_conflict_do_nothing()).rowcount:
        return ()
    note = Note(NoteCode.DELEGATION_LIMIT, about=limit)
    insert_in_place(connection, int(root["root_place"] or 0), Entry("notice", note=note), now)
    if root["root_turn"] is None:
        return ()
    content = PostContent(kind="notice", reason=note)
    target = target_of(connection, int(root["root_turn"]))
    post = NewPost(f"{mark}:{root['root_session']}", target, content, root["root_session"])
    return (insert_post(connection, post, now),)


def _address(connection: Connection, new: NewDelegation) -> tuple[int, BridgeSessionRequest]:
    """Tell to whom the task goes and where: a session that exists, or a new place."""
    number = find_next_number(connection, delegation)
    if new.session is None:
        key = PlaceKey(SERVICE, str(number))
        title = _title(new)
        row = {
            "service": key.service,
            "name": key.name,
            "title": title,
            "repository": new.repository or None,
        }
        made = connection.execute(insert(place).values(row).returning(place.c.id))
        place_id, external = int(made.scalar_one()), key.name
    else:
        there = connection.execute(_LAST_SURFACE, {"of": new.session}).one()
        key, title = PlaceKey(there.service, there.name), there.title
        place_id, external = there.place, there.external
    return place_id, BridgeSessionRequest(
        external_session_id=external,
        service_name=key.service,
        agent_name=new.agent,
        prompt=new.task,
        speaker=new.speaker or new.person,
        message_id=f"delegation:{number}",
        surface=key,
        descriptive_name=title,
    )


def _title(new: NewDelegation) -> str:
    line = new.name or " ".join(new.task.split())
    return line if len(line) <= TITLE_CHARACTERS else f"{line[:TITLE_CHARACTERS]}…"


def _say(
    connection: Connection,
    place_id: int,
    request: BridgeSessionRequest,
    context: str,
    now: float,
) -> int:
    """Write the task as a message of the one who asks."""
    speaker = request.speaker
    data = {"files": [], "to": [request.agent_name]}
    entry = Entry("message", request.prompt, speaker.name, data)
    number = insert_in_place(connection, place_id, entry, now)
    row = {
        "id": number,
        "place": place_id,
        "message_id": request.message_id,
        "speaker_id": speaker.id,
        "speaker_kind": speaker.kind,
        "files": [],
        "context": context,
    }
    connection.execute(insert(message).values(row))
    keep_words(connection, number, request.prompt, now)
    return number
