"""Stores which bridges share the database and which one leads, on PostgreSQL.

What becomes of a member's work is decided from the rows: all that belongs to no member is free.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from socket import gethostname
from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, insert, or_, select, tuple_, update

from app.store.claims import announce_orphans
from app.store.commits.endings import RUNNING
from app.store.database import Database
from app.store.fencing import Fence
from app.store.tables import duty, machine, member, session, turn
from app.store.turns import recover_turns

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


class MemberStore:
    """The member port on PostgreSQL."""

    def __init__(self, database: Database, now: Callable[[], float], own: Fence) -> None:
        """Store members; `own` is told who this process is, and fences its commits."""
        self._database = database
        self._now = now
        self._own = own
        database.writer.fence = own

    async def join(self, name: str, role: Role, slots: int) -> HandedOut:
        """Become a member; what the last run under this name left is handed out."""

        def write(connection: Connection) -> tuple[int, HandedOut]:
            now = self._now()
            last = connection.execute(select(member).where(member.c.name == name)).one_or_none()
            epoch = secrets.randbelow(MOST_EPOCHS) + 1
            handed_out = _remove(connection, [] if last is None else [last], now)
            who = {"name": name, "epoch": epoch, "role": role, "slots": slots}
            connection.execute(insert(member), who | {"load": {}, "beats": 0, "seen_at": now})
            _remember(connection, name, now)
            return epoch, handed_out

        epoch, handed_out = await self._database.writer.run(write)
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

    async def beat(self, load: Mapping[str, int], *, wants_lead: bool) -> Beat:
        """Say that this member is there; become the leader if that is wanted and there is none."""

        def write(connection: Connection) -> Beat:
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

        return await self._database.writer.run(write)

    async def take_over(self, lapsed: Sequence[Member]) -> HandedOut:
        """Remove those of these members that have not beaten since; hand out their work."""
        known = [(each.name, each.epoch, each.beats) for each in lapsed]

        def write(connection: Connection) -> HandedOut:
            # In one statement: one that renews its lease at this moment stays.
            still = tuple_(member.c.name, member.c.epoch, member.c.beats).in_(known)
            rows = connection.execute(delete(member).where(still).returning(member)).all()
            return _remove(connection, rows, self._now()) if rows else HandedOut()

        return await self._database.writer.run(write)

    async def leave(self) -> HandedOut:
        """Stop being a member, and hand out what is left."""

        def write(connection: Connection) -> HandedOut:
            own = select(member).where(member.c.name == self._own.name)
            return _remove(connection, connection.execute(own).all(), self._now())

        # What is still written behind it is refused, and no reason to end at once.
        self._own.gone = _ignore
        return await self._database.writer.run(write)


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
