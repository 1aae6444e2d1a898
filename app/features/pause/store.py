"""Stores what the operator paused, and reads what goes on once nothing is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from sqlalchemy import Connection, delete, func, insert, select

from app.model import wording
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey, SessionKey
from app.model.types import TurnRef, TurnState
from app.store.commits.admission import SUSPENDED, tell_suspended
from app.store.database import Database
from app.store.posts import UNSENT
from app.store.tables import (
    ASK_HOLDS,
    ASK_IS_OPEN,
    DELIVERY_IS_NEW,
    OPEN_TURN,
    place,
    post,
    schedule,
    surface,
    suspension,
    turn,
)
from app.store.values import content_of

Kind = Literal["all", "agent", "place"]


Reason = Literal["operator", "restored"]
"""Who paused: a person, or `restore`: then nothing is read or sent either."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """One thing that is paused."""

    scope: str
    """`all`, `agent:<id>` or `place:<place>`; a place includes what is within it."""
    reason: Reason
    since: float

    def split(self) -> tuple[Kind, str]:
        """Return what kind of scope it is, and the id or the name in it."""
        kind, _, name = self.scope.partition(":")
        return cast("Kind", kind), name

    def covers(self, place: PlaceKey, agents: Collection[str]) -> bool:
        """Tell whether turns of some agents in a place wait because of it."""
        kind, name = self.split()
        if kind == "agent":
            return name in agents
        # A turn that agents wait for may begin, so that theirs can end.
        return place.service != SERVICE and (kind == "all" or f"{place}:".startswith(f"{name}:"))


@dataclass(frozen=True, slots=True)
class Pending:
    """What the bridge goes on with once nothing is paused."""

    posts: Sequence[tuple[SessionKey, str]]
    """Where each unsent post goes, and its words."""
    turns: Sequence[tuple[PlaceKey, str, str]]
    """The place, the agent and the state of each turn that runs then."""
    asks: int
    """Open asks."""
    deliveries: int
    """Events that were stored and not read."""
    schedules: int
    """Schedules that are due."""


def describe_pause(paused: Suspension, name_of: Callable[[str], str]) -> str:
    """Say what is paused, since when, and how it goes on; `name_of` names an agent by its id."""
    kind, name = paused.split()
    shown = name_of(name) if kind == "agent" else name
    since = f"{datetime.fromtimestamp(paused.since, UTC):%Y-%m-%d %H:%M} UTC"
    words = wording.RESTORED if paused.reason == "restored" else wording.PAUSED[kind]
    return words.format(name=shown, since=since)


_WAITING = select(turn.c.session, turn.c.id).where(
    turn.c.state == TurnState.QUEUED, turn.c.held.is_(False)
)
_SCOPES = select(suspension).order_by(suspension.c.scope)


class SuspensionStore:
    """What is paused."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    def all(self) -> Sequence[Suspension]:
        """List what is paused, in the order of scopes."""
        rows = self._database.some(_SCOPES)
        return [Suspension(row.scope, row.reason, row.since) for row in rows]

    async def add(self, scope: str, reason: Reason) -> Sequence[int]:
        """Pause a scope, and tell those who wait there, once; return the posts to send."""

        def write(connection: Connection) -> list[int]:
            now = self._now()
            same = select(suspension).where(suspension.c.scope == scope)
            if connection.execute(same).first() is not None:
                return []
            new = {"scope": scope, "reason": reason, "since": now}
            connection.execute(insert(suspension), new)
            waiting = connection.execute(_WAITING.where(SUSPENDED)).all()
            return tell_suspended(connection, [row.id for row in waiting], now)

        return await self._database.writer.run(write)

    async def remove(self, scope: str) -> Sequence[TurnRef] | None:
        """Resume a scope; return the turns that can begin, None if it was not paused."""

        def write(connection: Connection) -> list[TurnRef] | None:
            gone = delete(suspension).where(suspension.c.scope == scope)
            if not connection.execute(gone).rowcount:
                return None
            free = connection.execute(_WAITING.where(~SUSPENDED).order_by(turn.c.id)).all()
            return [TurnRef(row.session, row.id) for row in free]

        return await self._database.writer.run(write)

    async def pending(self) -> Pending:
        """Read what the bridge goes on with once nothing is paused."""
        return await _read_pending(self._database, self._now())


async def _read_pending(database: Database, now: float) -> Pending:
    """Read what a bridge goes on with when it starts: posts, turns, asks, events, schedules."""
    posts = await database.all(select(post).where(post.c.state.in_(UNSENT)).order_by(post.c.id))
    turns = await database.all(
        select(place.c.service, place.c.name, surface.c.agent, turn.c.state)
        .select_from(turn)
        .join(surface, surface.c.id == turn.c.surface)
        .join(place, place.c.id == surface.c.place)
        .where(OPEN_TURN, turn.c.held.is_(False), turn.c.paused.is_(None))
        .where(turn.c.state != "parked")
        .order_by(turn.c.id)
    )
    counts = [
        (await database.all(select(func.count()).where(*which)))[0][0]
        for which in (
            (ASK_IS_OPEN, ASK_HOLDS),
            (DELIVERY_IS_NEW,),
            (schedule.c.state == "active", schedule.c.due_at <= now),
        )
    ]
    return Pending(
        [(SessionKey(row.service, row.external, row.agent), _words(row.content)) for row in posts],
        [(PlaceKey(row.service, row.name), row.agent, row.state) for row in turns],
        *counts,
    )


def _words(stored: Mapping[str, Any]) -> str:
    content = content_of(stored)
    return content.said or content.text or content.note or content.state
