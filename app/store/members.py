"""Stores which bridges are there and which one leads, and decides which one serves a session.

All work that belongs to no member is free. The turn table is the truth: a claim looks at it and
starts the turn in one commit. A job of Procrastinate is a wake-up for one session: a lost one is a
delay, and one too many does nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from socket import gethostname
from typing import Any, Final, Literal

from procrastinate import App, SyncPsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.types import JSONValue
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.exc import OperationalError

from app.model.types import Turn, TurnState
from app.store.commits.admission import SUSPENDED
from app.store.commits.endings import RUNNING
from app.store.commits.recovery import recover_turns
from app.store.database import Database, Store, write
from app.store.database.backend import Fence
from app.store.tables import duty, machine, member, session, turn
from app.store.turns import START

Role = Literal["all", "front", "worker"]
"""What a bridge does: a front talks with platforms and people, a worker runs turns."""


@dataclass(frozen=True, slots=True)
class Member:
    """One running bridge."""

    name: str
    epoch: int
    """Tells this start from all others under its name."""
    role: Role
    slots: int
    """How many turns it runs at once; none if it runs none."""
    load: Mapping[str, int]
    """How many it runs now, by agent."""
    beats: int
    """Grows as long as it is there."""
    seen_at: float


@dataclass(frozen=True, slots=True)
class Beat:
    """What a member learns when it says that it is there."""

    members: tuple[Member, ...]
    """All of them, itself included."""
    leader: str
    """The leader; empty if there is none."""


@dataclass(frozen=True, slots=True)
class HandedOut:
    """What became of the work of a member that is gone."""

    sessions: tuple[int, ...] = ()
    """The sessions whose turns were cut off."""
    posts: tuple[int, ...] = ()
    """The posts to send."""


LEADER = "desk"
"""The duty of the leader, under the name that earlier releases gave it."""
MOST_EPOCHS = 2**62
"""Never the same twice: one that returns at once after it was removed is no silent member."""
MACHINE_SECONDS = 90 * 86400.0
"""How long a machine that is gone is remembered: it may come back with what is on its disk."""

_NAMES = select(member.c.name)
_WITHOUT_MEMBER = turn.c.session.in_(
    select(session.c.id).where(
        or_(session.c.served_by.is_(None), session.c.served_by.not_in(_NAMES))
    )
)


class MemberStore(Store):
    """The member port on PostgreSQL."""

    def __init__(self, database: Database, now: Callable[[], float], own: Fence) -> None:
        """Store members; `own` is told who this process is, and fences its commits."""
        super().__init__(database, now)
        self._own = own
        database.writer.fence = own

    async def join(self, name: str, role: Role, slots: int) -> HandedOut:
        """Become a member; what the last run under this name left is handed out."""

        def begin(connection: Connection) -> tuple[int, HandedOut]:
            now = self._now()
            last = connection.execute(select(member).where(member.c.name == name)).one_or_none()
            epoch = secrets.randbelow(MOST_EPOCHS) + 1
            handed_out = _remove(connection, [] if last is None else [last], now)
            who = {"name": name, "epoch": epoch, "role": role, "slots": slots}
            connection.execute(insert(member), who | {"load": {}, "beats": 0, "seen_at": now})
            _remember(connection, name, now)
            return epoch, handed_out

        epoch, handed_out = await self._database.writer.run(begin)
        self._own.name, self._own.epoch = name, epoch
        return handed_out

    def renew(self) -> bool:
        """Beat without waiting for other commits; False if this process is no member any more.

        Raises:
            StoreUnavailable: that cannot be known now.
        """
        own = (member.c.name == self._own.name) & (member.c.epoch == self._own.epoch)
        seen = {"beats": member.c.beats + 1, "seen_at": self._now()}
        change = update(member).where(own).values(**seen)
        return self._database.look(lambda connection: connection.execute(change).rowcount > 0)

    @write
    def beat(self, connection: Connection, load: Mapping[str, int], *, wants_lead: bool) -> Beat:
        """Say that this member is there; become the leader if that is wanted and there is none."""
        own = update(member).where(member.c.name == self._own.name)
        seen = {"load": dict(load), "beats": member.c.beats + 1, "seen_at": self._now()}
        connection.execute(own.values(**seen))
        found = connection.execute(select(duty.c.member).where(duty.c.name == LEADER))
        leader = found.scalar()
        if leader is None and wants_lead:
            leader = self._own.name
            connection.execute(insert(duty), {"name": LEADER, "member": leader})
        rows = connection.execute(select(member).order_by(member.c.name))
        return Beat(tuple(map(_member_of, rows)), leader or "")

    @write
    def take_over(self, connection: Connection, lapsed: Sequence[Member]) -> HandedOut:
        """Remove those of these members that have not beaten since; hand out their work."""
        known = [(each.name, each.epoch, each.beats) for each in lapsed]
        # In one statement: one that renews its lease at this moment stays.
        still = tuple_(member.c.name, member.c.epoch, member.c.beats).in_(known)
        rows = connection.execute(delete(member).where(still).returning(member)).all()
        return _remove(connection, rows, self._now()) if rows else HandedOut()

    async def leave(self) -> HandedOut:
        """Stop being a member, and hand out what is left."""

        def end(connection: Connection) -> HandedOut:
            own = select(member).where(member.c.name == self._own.name)
            return _remove(connection, connection.execute(own).all(), self._now())

        # What is still written behind it is refused, and no reason to end at once.
        self._own.gone = _ignore
        return await self._database.writer.run(end)


def _ignore() -> None:
    """Do nothing."""


def _remove(connection: Connection, gone: Sequence[Row[Any]], now: float) -> HandedOut:
    """Remove members; hand out all work that then belongs to none."""
    names = [row.name for row in gone]
    connection.execute(delete(member).where(member.c.name.in_(names)))
    connection.execute(update(machine).where(machine.c.name.in_(names)).values(seen_at=now))
    connection.execute(delete(duty).where(duty.c.member.not_in(_NAMES)))
    cut = turn.c.state.in_(RUNNING) & _WITHOUT_MEMBER
    sessions = connection.execute(select(turn.c.session).where(cut)).scalars().all()
    posts = recover_turns(connection, _WITHOUT_MEMBER, now)
    announce_orphans(connection)
    return HandedOut(tuple(sessions), tuple(posts))


def _remember(connection: Connection, name: str, now: float) -> None:
    """Note on which machine a member is, and forget machines that have long been gone."""
    old = machine.c.name.not_in(_NAMES) & (machine.c.seen_at < now - MACHINE_SECONDS)
    connection.execute(delete(machine).where((machine.c.name == name) | old))
    connection.execute(insert(machine), {"name": name, "host": gethostname(), "seen_at": now})


def _member_of(row: Row[Any]) -> Member:
    return Member(row.name, row.epoch, row.role, row.slots, row.load, row.beats, row.seen_at)


COMMON: Final = "common"
"""The queue of all workers; each also has one by its own name."""
TASK: Final = "serve"
"""What a job asks for: that a member serves its session, if that waits."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker learns when it wants to serve a session."""

    answer: Literal["granted", "idle", "full", "elsewhere"]
    """Whether it may: not if there is nothing to do, or as many turns run as may run; `elsewhere`
    if another member runs a turn of the session, or was asked to."""
    has_moved: bool = False
    """Whether another member served the session last."""


Reason = Literal["submitted", "announced", "served"]
"""Why a member claims a turn: it committed the turn itself, unless another one serves the session
better; a job says that the session waits; or it serves the session already."""

_jobs = App(connector=SyncPsycopgConnector())
"""Defers jobs on connections that it is given: it never connects by itself."""

_other = turn.alias("other")
_IS_FIRST = (
    turn.c.id
    == select(func.min(_other.c.id))
    .where(_other.c.session == turn.c.session, _other.c.state == TurnState.QUEUED)
    .scalar_subquery()
)
_CAN_BEGIN = and_(
    turn.c.state == TurnState.QUEUED,
    _IS_FIRST,
    turn.c.held.is_(False),
    turn.c.paused.is_(None),
    ~SUSPENDED,
)
_IS_BUSY = exists().where(_other.c.session == turn.c.session, _other.c.state.in_(RUNNING))
"""Whether a turn of the session runs; its member looks for the next one when it ends."""
_WAITING = (
    select(turn.c.session)
    .join(session, session.c.id == turn.c.session)
    .where(_CAN_BEGIN, ~_IS_BUSY)
)
"""The sessions that have work, and no member that does it."""
_LAST_SERVER = _WAITING.add_columns(session.c.served_by).where(session.c.id == bindparam("of"))
_SITUATION = (
    select(
        session.c.agent,
        session.c.served_by,
        _CAN_BEGIN.label("can_begin"),
        _IS_BUSY.label("is_busy"),
    )
    .join(turn, turn.c.session == session.c.id)
    .where(turn.c.id == bindparam("turn"))
)
_MEMBERS = select(member.c.name, member.c.slots, member.c.load)
_NOTE_LOAD = (
    update(member)
    .where(member.c.name == bindparam("own"))
    .values(load=bindparam("own_load", type_=JSON))
)
_SERVE = START.add_cte(
    _NOTE_LOAD.cte("noted"),
    update(session)
    .where(session.c.id == bindparam("of_session"))
    .values(served_by=bindparam("own"))
    .cte("served"),
)
"""Starts a turn and notes who does, in one statement."""


class ClaimStore(Store):
    """The claims of one member on sessions."""

    def __init__(self, database: Database, now: Callable[[], float], own: Fence) -> None:
        """Claim for the member that `own` names."""
        super().__init__(database, now)
        self._own = own

    @write
    def announce(self, connection: Connection, session_id: int) -> None:
        """Have a session served if it waits, best by the member that served it last."""
        row = connection.execute(_LAST_SERVER, {"of": session_id}).first()
        if row is not None:
            free = _list_free(connection.execute(_MEMBERS).all())
            queue = row.served_by if row.served_by in free else COMMON
            _announce(connection, [session_id], queue)

    @write
    def pass_on(self, connection: Connection, session_id: int, load: Mapping[str, int]) -> bool:
        """Have a session that waits served by another member with room; False if none has."""
        self._note(connection, load)
        free = _list_free(connection.execute(_MEMBERS).all(), but=self._own.name)
        if free and connection.execute(_LAST_SERVER, {"of": session_id}).first() is not None:
            _announce(connection, [session_id], min(free, key=lambda name: free[name]))
        return bool(free)

    @write
    def announce_missing(self, connection: Connection, known: Collection[int] = ()) -> None:
        """Have every session served that waits, but those that are announced already."""
        waiting = connection.execute(_WAITING.order_by(turn.c.id)).scalars()
        _announce(connection, [each for each in waiting if each not in known], COMMON)

    async def list_queues(self) -> frozenset[str]:
        """List the queues that members look at."""
        names = await self._database.all(select(member.c.name))
        return frozenset({COMMON, *(row.name for row in names)})

    @write
    def claim(
        self,
        connection: Connection,
        next_turn: Turn,
        load: Mapping[str, int],
        why: Reason,
        *,
        total: int | None,
        of_agent: int | None,
    ) -> Claim:
        """Start a session's next turn here; `load` includes it.

        `total` limits the turns of all members, `of_agent` those of the session's agent.
        """
        now = connection.execute(_SITUATION, {"turn": next_turn.id}).first()
        if now is None or not now.can_begin:
            return Claim("idle")
        if now.is_busy:
            return Claim("elsewhere")
        members = () if why == "served" else connection.execute(_MEMBERS).all()
        if why == "submitted" and (better := self._find_better(members, now.served_by, load)):
            _announce(connection, [next_turn.session], better)
            return Claim("elsewhere")
        loads = [load, *(each.load for each in members if each.name != self._own.name)]
        running = sum(sum(each.values()) for each in loads)
        same = sum(each.get(now.agent, 0) for each in loads)
        is_full = running > (total or running) or same > (of_agent or same)
        if is_full and why != "served":
            return Claim("full")
        own = {"own": self._own.name, "own_load": dict(load)}
        connection.execute(_SERVE, {**own, "of": next_turn.id, "of_session": next_turn.session})
        return Claim("granted", has_moved=now.served_by not in {None, self._own.name})

    @write
    def release(self, connection: Connection, session_id: int, load: Mapping[str, int]) -> None:
        """Serve a session no longer; what came at the last moment is announced."""
        self._note(connection, load)
        if connection.execute(_LAST_SERVER, {"of": session_id}).first() is not None:
            _announce(connection, [session_id], COMMON)

    def _note(self, connection: Connection, load: Mapping[str, int]) -> None:
        connection.execute(_NOTE_LOAD, {"own": self._own.name, "own_load": dict(load)})

    def _find_better(
        self, members: Sequence[Row[Any, Any, Any]], last: str | None, load: Mapping[str, int]
    ) -> str:
        """Find the queue of who serves a session better: who served it last, or has less to do."""
        others = _list_free(members, but=self._own.name)
        if last == self._own.name:
            return ""
        if last in others:
            return str(last)
        least = min(others.values(), default=0)
        return COMMON if others and least < sum(load.values()) - 1 else ""


def announce_orphans(connection: Connection) -> None:
    """Have the sessions served that wait for a member that is gone."""
    is_orphan: ColumnElement[bool] = session.c.served_by.not_in(select(member.c.name))
    waiting = connection.execute(_WAITING.where(is_orphan).order_by(turn.c.id)).scalars().all()
    _announce(connection, waiting, COMMON)


def _list_free(members: Sequence[Row[Any, Any, Any]], but: str = "") -> dict[str, int]:
    """List how much the members do that can do more."""
    running = {each.name: (sum(each.load.values()), each.slots) for each in members}
    return {
        name: count for name, (count, slots) in running.items() if count < slots and name != but
    }


def _announce(connection: Connection, sessions: Sequence[int], queue: str) -> None:
    """Wake up a member, or any of them, for some sessions once this transaction is committed."""
    if not sessions:
        return
    driver = connection.connection.driver_connection
    wake_up = _jobs.configure_task(TASK, queue=queue, connection=driver)
    wanted: list[dict[str, JSONValue]] = [{"session": each} for each in sessions]
    try:
        wake_up.batch_defer(*wanted)
    except ConnectorException as error:
        raise OperationalError("announce", None, error.__cause__ or error) from error
