"""Finds sessions by id, by key and by place; their state is read off turns, asks and processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)

from app.model.conversations import EVERYTHING, ListFilter, merge_attributes
from app.model.inbound import RUN
from app.model.keys import PlaceKey, SessionKey
from app.model.types import (
    ActivePlace,
    Activity,
    ProcessRecord,
    Session,
    SessionState,
    WaitingMessage,
)
from app.store.commits.admission import remove_session
from app.store.database import Store, write
from app.store.dialects import insert
from app.store.spending import add_spending
from app.store.tables import (
    ANSWER,
    ASK_HOLDS,
    ASK_IS_OPEN,
    OFFER,
    OPEN_TURN,
    ask,
    heard,
    message,
    place,
    process,
    session,
    surface,
    turn,
)
from app.store.values import read_row, session_of


def _some_turn(*states: str) -> Any:
    # Not `in_`, whose text SQLAlchemy renders again at every execution.
    either = or_(*(turn.c.state == state for state in states))
    return exists().where(turn.c.session == session.c.id, either)


_LIMITED = exists().where(turn.c.session == session.c.id, turn.c.paused == "limited")
STATE: ColumnElement[str] = case(
    (session.c.closed.is_not(None), session.c.closed),
    (_LIMITED, SessionState.LIMITED),
    (
        # Nothing waits for the answer to an offer.
        exists().where(ask.c.session == session.c.id, ASK_IS_OPEN, ASK_HOLDS),
        SessionState.WAITING,
    ),
    (_some_turn("starting", "prompted"), SessionState.WORKING),
    (_some_turn("parked"), SessionState.WAITING),
    (_some_turn("queued"), SessionState.QUEUED),
    (exists().where(process.c.session == session.c.id), SessionState.IDLE),
    else_=SessionState.PARKED,
)
"""What a session is doing."""
_HELD = exists().where(
    turn.c.session == session.c.id, turn.c.state == "queued", turn.c.held.is_(True)
)
_LAST_TURN = (
    select(turn.c.state)
    .where(turn.c.session == session.c.id)
    .order_by(turn.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
_each = surface.alias()
_FIRST_SURFACE = (
    select(func.min(_each.c.id))
    .where(_each.c.session == session.c.id)
    .correlate(session)
    .scalar_subquery()
)


def select_sessions() -> Select[Any]:
    """Select sessions with their state, their first key and their place."""
    return (
        select(
            session,
            STATE.label("state"),
            _HELD.label("held"),
            _LAST_TURN.label("last_turn"),
            surface.c.service,
            surface.c.external,
            place.c.service.label("place_service"),
            place.c.name.label("place_name"),
            place.c.link,
            place.c.named,
        )
        .select_from(session)
        .join(surface, surface.c.id == _FIRST_SURFACE)
        .join(place, place.c.id == session.c.place)
    )


_ONE = select_sessions().where(session.c.id == bindparam("of"))
_IN_PLACE = (
    select_sessions()
    .where(
        session.c.id.in_(
            select(surface.c.session)
            .join(place)
            .where(place.c.service == bindparam("service"), place.c.name == bindparam("name"))
        ),
        session.c.closed.is_(None),
    )
    .order_by(session.c.id)
)


UNSHOWN_KINDS = 50
"""Kinds of what could not be shown that are told apart."""


class SessionStore(Store):
    """The session port."""

    def session(self, session_id: int) -> Session | None:
        """Read one session."""
        row = self._database.one(_ONE, of=session_id)
        return session_of(row) if row else None

    def find(self, key: SessionKey) -> Session | None:
        """Find a session by its key."""
        named = select(surface.c.session).where(
            surface.c.service == key.service,
            surface.c.external == key.external,
            surface.c.agent == key.agent,
        )
        row = self._database.one(select_sessions().where(session.c.id == named.scalar_subquery()))
        return session_of(row) if row else None

    def in_place(self, where: PlaceKey) -> Sequence[Session]:
        """List the sessions of a place that were not removed."""
        named = {"service": where.service, "name": where.name}
        return [session_of(row) for row in self._database.some(_IN_PLACE, **named)]

    async def recent(
        self,
        only: ListFilter = EVERYTHING,
        *,
        before: tuple[float, int] | None = None,
        limit: int,
    ) -> Sequence[Session]:
        """List sessions, most recently used first."""
        order = (session.c.updated_at.desc(), session.c.id.desc())
        query = select_sessions().order_by(*order).limit(limit)
        if only.agent is not None:
            query = query.where(session.c.agent == only.agent)
        if only.service is not None:
            query = query.where(place.c.service == only.service)
        if only.state is not None:
            query = query.where(STATE.in_([only.state]))
        if only.since is not None:
            query = query.where(session.c.updated_at >= only.since)
        if before is not None:
            query = query.where(tuple_(session.c.updated_at, session.c.id) < before)
        return [session_of(row) for row in await self._database.all(query)]

    async def activities(self) -> Mapping[str, Activity]:
        """Tell which agents have open turns, and whether all of these wait."""
        is_open = exists().where(turn.c.session == session.c.id, OPEN_TURN)
        query = select(session.c.agent, STATE.label("state")).where(is_open).distinct()
        found: dict[str, Activity] = {}
        for row in await self._database.all(query):
            waits = row.state in {SessionState.WAITING, SessionState.LIMITED}
            found[row.agent] = "waiting" if waits and found.get(row.agent) != "busy" else "busy"
        return found

    async def counts(self) -> Mapping[str, int]:
        """Count the sessions of each agent that were not removed."""
        there = session.c.closed.is_(None)
        query = select(session.c.agent, func.count().label("number")).where(there)
        found = await self._database.all(query.group_by(session.c.agent))
        return {row.agent: row.number for row in found}

    async def repositories(self, *, limit: int) -> Sequence[str]:
        """List the repositories and folders that were chosen, most recently used first."""
        query = (
            select(place.c.repository)
            .join(session, session.c.place == place.c.id)
            .where(place.c.repository.is_not(None), place.c.repository != "none")
            .group_by(place.c.repository)
            .order_by(func.max(session.c.updated_at).desc())
            .limit(limit)
        )
        return [row.repository for row in await self._database.all(query)]

    async def active(self, service: str, agent: str, *, since: float) -> Sequence[ActivePlace]:
        """List an agent's conversations on a service that were used since then."""
        said = (
            select(message.c.message_id)
            .where(
                message.c.place == surface.c.place,
                message.c.message_id.not_like(f"{OFFER}%"),
                message.c.message_id.not_like(f"{ANSWER}%"),
                message.c.message_id.not_like(f"{RUN}%"),
            )
            .limit(1)
            .correlate(surface)
        )
        first = said.order_by(message.c.id).scalar_subquery()
        last = said.order_by(message.c.id.desc()).scalar_subquery()
        query = (
            select(
                surface.c.external,
                session.c.updated_at,
                first.label("first"),
                last.label("last"),
            )
            .select_from(surface)
            .join(session, session.c.id == surface.c.session)
            .where(
                surface.c.service == service,
                surface.c.agent == agent,
                session.c.updated_at >= since,
                session.c.closed.is_(None),
            )
            .order_by(session.c.updated_at.desc())
        )
        return [
            ActivePlace(
                SessionKey(service, row.external, agent),
                row.first or "",
                row.last or "",
                row.updated_at,
            )
            for row in await self._database.all(query)
        ]

    async def waiting_messages(self, service: str, agent: str) -> Sequence[WaitingMessage]:
        """List what people said to an agent on a service and what waits in its queue."""
        query = (
            select(place.c.name, message.c.message_id, message.c.speaker_id)
            .select_from(turn)
            .join(heard, heard.c.turn == turn.c.id)
            .join(message, message.c.id == heard.c.message)
            .join(place, place.c.id == message.c.place)
            .join(session, session.c.id == turn.c.session)
            .where(turn.c.state == "queued", place.c.service == service, session.c.agent == agent)
        )
        return [
            WaitingMessage(PlaceKey(service, row.name), row.message_id, row.speaker_id)
            for row in await self._database.all(query)
        ]

    @write
    def link(
        self, connection: Connection, session_id: int, key: SessionKey, where: PlaceKey
    ) -> bool:
        """Make a further place a surface of a session; False if the key names another one."""
        named = {"service": where.service, "name": where.name}
        connection.execute(insert(place).on_conflict_do_nothing(), named)
        there = select(place.c.id).filter_by(**named).scalar_subquery()
        new = {"service": key.service, "external": key.external, "agent": key.agent}
        connection.execute(
            insert(surface).values(**new, session=session_id, place=there).on_conflict_do_nothing()
        )
        found = connection.execute(select(surface.c.session).filter_by(**new)).scalar_one()
        return bool(found == session_id)

    @write
    def rename(self, connection: Connection, session_id: int, title: str) -> None:
        """Set a session's title."""
        connection.execute(update(session).where(session.c.id == session_id).values(title=title))

    @write
    def count_unshown(
        self, connection: Connection, session_id: int, counts: Mapping[str, int]
    ) -> None:
        """Count what a session's agent sent and no one can be shown, by what it is."""
        own = session.c.id == session_id
        known = Counter(connection.execute(select(session.c.unshown).where(own)).scalar() or {})
        known.update(counts)
        most = dict(known.most_common(UNSHOWN_KINDS))
        connection.execute(update(session).where(own).values(unshown=most))

    @write
    def annotate(self, connection: Connection, session_id: int, changes: Mapping[str, Any]) -> None:
        """Change what other programs keep with a session; None removes an attribute."""
        own = session.c.id == session_id
        known = connection.execute(select(session.c.attributes).where(own)).scalar_one()
        merged = merge_attributes(known or {}, changes)
        changed = {"attributes": merged or None, "updated_at": self._now()}
        connection.execute(update(session).where(own).values(changed))

    @write
    def remove(self, connection: Connection, session_id: int) -> None:
        """Remove an agent from its place; what was said stays readable."""
        remove_session(connection, session_id)

    @write
    def reads_others(self, connection: Connection, session_id: int) -> None:
        """Record that a tool brings words of others into a session's conversation."""
        connection.execute(
            update(session).where(session.c.id == session_id).values(read_others=True)
        )

    @write
    def spend(
        self,
        connection: Connection,
        session_id: int,
        cost: float,
        *,
        turn: int,
        day: str,
        most: float,
        shared: float,
    ) -> tuple[float, float]:
        """Record the cost that an agent reports for its conversation, up to `most` of it."""
        row = connection.execute(
            select(session.c.spent, session.c.reported, session.c.cleared).where(
                session.c.id == session_id
            )
        ).one()
        # An agent that restarted or began a new conversation may count from zero.
        claimed = cost - row.reported if cost >= row.reported else cost
        grown = min(claimed, most)
        connection.execute(
            update(session)
            .where(session.c.id == session_id)
            .values(spent=row.spent + grown, reported=cost)
        )
        believed = min(grown, shared) if claimed <= most else 0.0
        add_spending(connection, turn, day, grown, self._area_of, shared=believed)
        return row.spent - row.cleared, row.spent + grown - row.cleared


class ProcessStore(Store):
    """The process port."""

    @write
    def started(self, connection: Connection, record: ProcessRecord) -> None:
        """Store a process."""
        connection.execute(insert(process), asdict(record))

    @write
    def ended(self, connection: Connection, marker: str) -> None:
        """Delete a process that has ended."""
        connection.execute(delete(process).where(process.c.marker == marker))

    async def leftovers(self) -> Sequence[ProcessRecord]:
        """List the processes that were never recorded as ended."""
        return [read_row(ProcessRecord, row) for row in await self._database.all(select(process))]
