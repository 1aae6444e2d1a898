"""Stores what the operator paused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

from sqlalchemy import Connection, delete, insert, select

from app.model import wording
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey
from app.model.types import TurnRef, TurnState
from app.store.commits.admission import SUSPENDED, tell_suspended
from app.store.database import Store, write
from app.store.tables import (
    suspension,
    turn,
)

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


class SuspensionStore(Store):
    """What is paused."""

    def all(self) -> Sequence[Suspension]:
        """List what is paused, in the order of scopes."""
        rows = self._database.some(_SCOPES)
        return [Suspension(row.scope, row.reason, row.since) for row in rows]

    @write
    def add(self, connection: Connection, scope: str, reason: Reason) -> Sequence[int]:
        """Pause a scope, and tell those who wait there, once; return the posts to send."""
        now = self._now()
        same = select(suspension).where(suspension.c.scope == scope)
        if connection.execute(same).first() is not None:
            return []
        new = {"scope": scope, "reason": reason, "since": now}
        connection.execute(insert(suspension), new)
        waiting = connection.execute(_WAITING.where(SUSPENDED)).all()
        return tell_suspended(connection, [row.id for row in waiting], now)

    @write
    def remove(self, connection: Connection, scope: str) -> Sequence[TurnRef] | None:
        """Resume a scope; return the turns that can begin, None if it was not paused."""
        gone = delete(suspension).where(suspension.c.scope == scope)
        if not connection.execute(gone).rowcount:
            return None
        free = connection.execute(_WAITING.where(~SUSPENDED).order_by(turn.c.id)).all()
        return [TurnRef(row.session, row.id) for row in free]
