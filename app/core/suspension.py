"""Pauses and resumes work on behalf of the operator: everything, one agent, or one place.

What is paused is in the store, and a turn checks it in the commit that begins it. Running turns end
as usual, and messages are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, Protocol, cast

from app.clock import Clock
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.model import wording
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey, SessionKey
from app.model.ports import TurnEngine
from app.model.types import TurnRef
from app.retry import persist

Kind = Literal["all", "agent", "place"]
Reason = Literal["operator", "restored"]
"""Who paused: a person, or `restore`: then nothing is read or sent either."""
ALL: Final = "all"
AGENT: Final = "agent:"
PLACE: Final = "place:"


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


class SuspensionStore(Protocol):
    """What is paused."""

    def all(self) -> Sequence[Suspension]:
        """List what is paused, in the order of scopes."""
        ...

    async def add(self, scope: str, reason: Reason) -> Sequence[int]:
        """Pause a scope and tell those who wait there, once; returns the posts to send."""
        ...

    async def remove(self, scope: str) -> Sequence[TurnRef] | None:
        """Resume a scope; returns the turns that can begin, None if it was not paused."""
        ...

    async def pending(self) -> Pending:
        """Read what the bridge goes on with once nothing is paused."""
        ...


class Suspensions:
    """What is paused in one bridge, and how that changes."""

    def __init__(
        self,
        store: SuspensionStore,
        engine: TurnEngine,
        outbox: Outbox,
        feed: Feed,
        clock: Clock,
    ) -> None:
        self._store = store
        self._engine = engine
        self._outbox = outbox
        self._feed = feed
        self._clock = clock
        self.all: Callable[[], Sequence[Suspension]] = store.all

    @property
    def is_restored(self) -> bool:
        """Whether the data comes from a backup and the operator has not resumed yet."""
        return any(each.reason == "restored" for each in self._store.all())

    async def pause(self, scope: str) -> None:
        """Begin no further turn in a scope; repeating it changes nothing."""
        self._outbox.send(*await persist(self._clock, self._store.add, scope, "operator"))

    async def lift(self, scope: str) -> Sequence[TurnRef] | None:
        """End a pause; returns the turns that can begin, None if there was none."""
        return await persist(self._clock, self._store.remove, scope)

    def begin(self, free: Sequence[TurnRef]) -> None:
        """Begin turns that were paused."""
        for ref in free:
            self._engine.submit(ref.session)
            self._feed.notify(ref.session)
