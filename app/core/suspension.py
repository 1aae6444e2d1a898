"""Pauses and resumes work on behalf of the operator: everything, one agent, or one place.

What is paused is in the store, and a turn checks it in the commit that begins it. Running turns end
as usual, and messages are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.clock import Clock
from app.core.feed import Feed
from app.core.outbox import Outbox
from app.model.ports import TurnEngine
from app.model.suspension import Suspension
from app.model.types import TurnRef
from app.retry import persist
from app.store.suspensions import SuspensionStore


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
