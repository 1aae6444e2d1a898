"""Reads into the record what other tables keep anyway: calls and asks, grants, posts.

How far each table was read is committed with the rows that were made of it, so that each thing is
recorded once, whoever is the leader and wherever a process ends. Rows become visible in the order
of their numbers, on PostgreSQL too: all commits of an installation are made one after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, func, or_, select, update

from app.model import ask_wording as wording
from app.model.asks import by_person
from app.model.record import RecordEvent, RecordKind
from app.store.dialects import JsonField, insert
from app.store.record.chain import SOURCES, append, begin
from app.store.record.describing import account, describe, describe_call, name_rule
from app.store.tables import (
    OPEN_TURN,
    ask,
    grant,
    place,
    post,
    record_pending,
    record_position,
    session,
    transcript,
    turn,
)
from app.store.values import ask_of

AT_ONCE = 200
"""Numbers of a table that one commit looks at: few enough to delay no other write."""
_OVER = ("completed", "failed")
"""States of a call that has ended."""
_SENT = ("done", "failed")
"""States of a post that has ended."""
_NOTED = transcript.c.kind.in_(("tool", "ask"))
_POST = (
    post.c.id,
    post.c.session,
    post.c.turn,
    post.c.agent,
    post.c.service,
    post.c.external,
    post.c.state,
    post.c.remote_id,
    post.c.created_at,
    JsonField(post.c.content, "kind").label("shows"),
)
_GRANT_IS_OVER = or_(grant.c.ended_at.is_not(None), grant.c.id.is_(None))


def is_behind(connection: Connection) -> bool:
    """Tell whether there is something to record, or much was passed that is not recorded."""
    positions = _positions(connection)
    if not positions:
        return True
    notable = (
        exists().where(transcript.c.id > positions["transcript"], _NOTED),
        exists().where(grant.c.id > positions["grant"]),
        exists().where(post.c.id > positions["post"]),
        _ended_calls().exists(),
        _ended_posts().exists(),
        _ended_grants().exists(),
    )
    if any(connection.execute(select(each)).scalar() for each in notable):
        return True
    latest = connection.execute(select(func.max(transcript.c.id))).scalar() or 0
    return bool(latest - positions["transcript"] > AT_ONCE)


def follow(connection: Connection, now: float) -> bool:
    """Record the next of what happened; returns whether there is more.

    On a database without a record it is begun, with what happens from then on.
    """
    positions = _positions(connection)
    if not positions:
        begin(connection, now)
        return False
    step = _Step(connection, now, positions)
    more = [step.read_transcript(), step.read_grants(), step.read_posts()]
    if not any(more):
        step.read_ended()
    append(connection, sorted(step.events.values(), key=lambda event: event.at))
    step.keep()
    return any(more)


def _positions(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(record_position)).all()
    return {row.source: row.number for row in rows}


class _Step:
    """What one commit records."""

    def __init__(self, connection: Connection, now: float, positions: Mapping[str, int]) -> None:
        self._connection = connection
        self._now = now
        self._positions = positions
        self._reached: dict[str, int] = {}
        self._pending: dict[str, tuple[str, int]] = {}
        """What has not ended: its source and its number, by name."""
        self._over: set[str] = set()
        """The names of what was pending and has ended."""
        self._described: dict[tuple[int | None, int | None], dict[str, Any]] = {}
        self.events: dict[str, RecordEvent] = {}
        """What happened, by its source."""

    def read_transcript(self) -> bool:
        """Read calls and asks; returns whether there are more rows."""
        begun, upto, more = self._range("transcript")
        here = and_(transcript.c.id > begun, transcript.c.id <= upto)
        query = select(transcript).where(here, _NOTED).order_by(transcript.c.id)
        for row in self._connection.execute(query):
            if row.kind == "ask":
                self._take_ask(row)
            elif row.data.get("status") in _OVER:
                self._take_call(row, str(row.data["status"]))
            else:
                self._pending[_call_name(row)] = ("call", row.id)
        return more

    def read_grants(self) -> bool:
        """Read grants; returns whether there are more."""
        begun, upto, more = self._range("grant")
        query = select(grant).where(grant.c.id > begun, grant.c.id <= upto).order_by(grant.c.id)
        for row in self._connection.execute(query):
            self._take_grant(row)
            self._pending[f"grant:{row.id}:end"] = ("grant", row.id)
        return more

    def read_posts(self) -> bool:
        """Read posts; returns whether there are more."""
        begun, upto, more = self._range("post")
        query = select(*_POST).where(post.c.id > begun, post.c.id <= upto).order_by(post.c.id)
        for row in self._connection.execute(query):
            if row.state in _SENT:
                self._take_post(row)
            else:
                self._pending[f"post:{row.id}"] = ("post", row.id)
        return more

    def read_ended(self) -> None:
        """Read what had not ended before."""
        for row in self._connection.execute(_ended_calls()).all():
            self._over.add(row.name)
            if row.id is not None:
                self._take_call(row, "unfinished")
        for row in self._connection.execute(_ended_posts()).all():
            self._over.add(row.name)
            if row.id is not None:
                self._take_post(row)
        for row in self._connection.execute(_ended_grants()).all():
            self._over.add(row.name)
            if row.id is not None:
                self._take_end(row)

    def keep(self) -> None:
        """Store how far it was read, and what has not ended."""
        for source, number in self._reached.items():
            if number != self._positions[source]:
                here = record_position.c.source == source
                change = update(record_position).where(here).values(number=number)
                self._connection.execute(change)
        over = self._over | self.events.keys()
        gone = delete(record_pending).where(record_pending.c.name.in_(over))
        if over:
            self._connection.execute(gone)
        new = [
            {"name": name, "source": source, "number": number}
            for name, (source, number) in self._pending.items()
            if name not in over
        ]
        if new:
            add = insert(record_pending)
            latest = add.on_conflict_do_update(
                index_elements=["name"], set_={"number": add.excluded.number}
            )
            self._connection.execute(latest, new)

    def _range(self, source: str) -> tuple[int, int, bool]:
        """Return the last number that was read, the last one to read now, and whether more are."""
        table, begun = SOURCES[source], self._positions[source]
        latest = self._connection.execute(select(func.max(table.c.id))).scalar() or 0
        # What is deleted may have been the latest.
        latest = max(latest, begun)
        upto = min(latest, begun + AT_ONCE)
        self._reached[source] = upto
        return begun, upto, upto < latest

    def _take_call(self, row: Row[Any], status: str) -> None:
        decided = row.data.get("decided") or {}
        if decided.get("allowed") is False and decided.get("how") != "rule":
            # It did not run, and what people said is the decision on an ask.
            self._over.add(_call_name(row))
            return
        refused = decided.get("allowed") is False
        person = _answered(self._connection, row) if decided.get("how") == "person" else {}
        self._note(
            RecordEvent(
                kind=RecordKind.DECISION if refused else RecordKind.CALL,
                source=_call_name(row),
                at=row.at,
                outcome="refused" if refused else status,
                session=row.session,
                turn=row.turn,
                **self._describe(row.session, row.turn),
                decided_by=str(decided.get("who") or ""),
                decided_id=person.get("decided_id", ""),
                rule=name_rule(decided),
                what=describe_call(row),
                ref=person.get("ref", ""),
            )
        )

    def _take_ask(self, row: Row[Any]) -> None:
        if row.data.get("state") == "open":
            return
        found = self._connection.execute(select(ask).where(ask.c.id == row.data.get("ask"))).first()
        if found is None or found.state == "open":
            return
        self._note(
            RecordEvent(
                kind=RecordKind.DECISION,
                source=f"ask:{found.id}",
                at=found.closed_at or row.at,
                outcome=_verdict(found),
                session=found.session,
                turn=found.turn,
                **self._describe(found.session, found.turn),
                decided_by=found.answered_by or "",
                decided_id=_decider(self._connection, found),
                what=found.subject or found.title,
                ref=f"ask:{found.id}",
            )
        )

    def _take_grant(self, row: Row[Any]) -> None:
        where = self._connection.execute(_asked_turn(row.ask)).scalar()
        self._note(
            RecordEvent(
                kind=RecordKind.GRANT,
                source=f"grant:{row.id}",
                at=row.granted_at,
                outcome="granted",
                session=row.session,
                turn=where,
                **self._describe(row.session, where),
                decided_by=row.granted_by,
                decided_id=_account_in(self._connection, row.session, row.speaker),
                what=wording.granted(row.kind, row.extent, row.subject),
                ref=f"ask:{row.ask}" if row.ask else "",
            )
        )

    def _take_end(self, row: Row[Any]) -> None:
        self._note(
            RecordEvent(
                kind=RecordKind.GRANT,
                source=f"grant:{row.id}:end",
                at=row.ended_at,
                outcome="taken back",
                session=row.session,
                **self._describe(row.session, None),
                decided_by=row.ended_by,
                what=wording.granted(row.kind, row.extent, row.subject),
                ref=f"grant:{row.id}",
            )
        )

    def _take_post(self, row: Row[Any]) -> None:
        where = {"agent": row.agent, "place": f"{row.service}:{row.external}"}
        self._note(
            RecordEvent(
                kind=RecordKind.POST,
                source=f"post:{row.id}",
                # When it arrived is not stored: it is recorded soon after that.
                at=self._now,
                outcome="sent" if row.state == "done" else "failed",
                session=row.session,
                turn=row.turn,
                **{**where, **self._describe(row.session, row.turn)},
                what=row.shows or "",
                ref=row.remote_id or "",
            )
        )

    def _note(self, event: RecordEvent) -> None:
        self.events.setdefault(event.source, event)

    def _describe(self, session_id: int | None, turn_id: int | None) -> dict[str, Any]:
        key = (session_id, turn_id)
        if key not in self._described:
            self._described[key] = describe(self._connection, session_id, turn_id)
        return self._described[key]


def _waiting(source: str, *columns: Any) -> Any:
    return select(record_pending.c.name, *columns).where(record_pending.c.source == source)


def _ended_calls() -> Any:
    """Select the calls that had not ended when their turn did, or that were deleted."""
    is_open = exists().where(turn.c.id == transcript.c.turn, OPEN_TURN)
    return (
        _waiting("call", transcript)
        .outerjoin(transcript, transcript.c.id == record_pending.c.number)
        .where(~is_open.correlate(transcript))
        .limit(AT_ONCE)
    )


def _ended_posts() -> Any:
    return (
        _waiting("post", *_POST)
        .outerjoin(post, post.c.id == record_pending.c.number)
        .where(or_(post.c.state.in_(_SENT), post.c.id.is_(None)))
        .limit(AT_ONCE)
    )


def _ended_grants() -> Any:
    return (
        _waiting("grant", grant)
        .outerjoin(grant, grant.c.id == record_pending.c.number)
        .where(_GRANT_IS_OVER)
        .limit(AT_ONCE)
    )


def _call_name(row: Row[Any]) -> str:
    """Name a call by its turn and a hash of what the agent calls it, which may be any words."""
    call = sha256(str(row.data.get("call")).encode(errors="replace")).hexdigest()
    return f"call:{row.turn}:{call[:16]}"


def _verdict(row: Row[Any]) -> str:
    """Tell how an ask ended; words of people are not in it."""
    if row.state != "answered":
        return str(row.state)
    allowed = by_person(ask_of(row))["allowed"]
    return {True: "allowed", False: "rejected"}.get(allowed, "answered")


def _asked_turn(ask_id: int | None) -> Any:
    return select(ask.c.turn).where(ask.c.id == ask_id)


def _answered(connection: Connection, row: Row[Any]) -> dict[str, str]:
    """Find the ask that a person answered for a call."""
    mine = (ask.c.turn == row.turn) & (ask.c.call == str(row.data.get("call")))
    query = select(ask).where(mine, ask.c.state == "answered").order_by(ask.c.id.desc())
    found = connection.execute(query).first()
    if found is None:
        return {}
    return {"decided_id": _decider(connection, found), "ref": f"ask:{found.id}"}


def _decider(connection: Connection, row: Row[Any]) -> str:
    """Return the account of the person who answered an ask, on the service where it was shown."""
    return _account_in(connection, row.host or row.session, row.speaker)


def _account_in(connection: Connection, session_id: int, person: str) -> str:
    of = select(place.c.service).join(session, session.c.place == place.c.id)
    service = connection.execute(of.where(session.c.id == session_id)).scalar()
    return account(service or "", person)
