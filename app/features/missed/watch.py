"""Looks for what one adapter missed: which source is due, how far back, and how often.

A source that was used lately is read every minute, any other one every few minutes, and only so
many in a minute: in a large workspace a round over all of them takes longer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Final

from app.core.adapters import Adapter, Source
from app.core.runtime import Runtime
from app.errors import (
    DeliveryRefused,
    DeliveryUnreadable,
    PostError,
    ServiceRefused,
    StoreUnavailable,
)
from app.model.inbound import Delivery, Gap, Heard
from app.retry import persist

logger = logging.getLogger(__name__)

LIST_SECONDS: Final = 60.0
"""How often an adapter is asked for its sources: a thread that has just begun is one."""
USED_SECONDS: Final = 3600.0
"""How long a source counts as used."""
USED_PAUSE_SECONDS: Final = 60.0
"""How often a source that is used is read: people wait there."""
PAUSE_SECONDS: Final = 300.0
"""How often any other one is read, as far as the budget allows."""
BUDGET: Final = 40
"""Sources that are read in any minute at most: Slack allows 50 calls of a method."""
OTHERS: Final = 3
"""Every third read is left to sources that are not in use, however many are."""
STEP_SECONDS: Final = 5.0
"""How soon a gap is noticed."""
MINUTE: Final = 60.0
GRACE_SECONDS: Final = 5.0
"""How long an event may take to arrive by itself."""
OVERLAP_SECONDS: Final = 60.0
"""How much is read twice: platforms list some messages a moment later."""
LOOK_SECONDS: Final = 3600.0
"""Time limit to read one source: a long history at one call a minute."""
GAP_SECONDS: Final = 120.0
"""How old the last position must be for the bridge to have been away: one is stored a minute."""
DAY_SECONDS: Final = 86_400.0
LISTED: Final = ""
"""The name under which it is remembered how far all sources were compared."""


class Watch:
    """Looks for what one adapter missed."""

    def __init__(self, runtime: Runtime, adapter: Adapter) -> None:
        self._runtime = runtime
        self._clock = runtime.clock
        self._adapter = adapter
        self._name = adapter.service_name
        self._gaps = runtime.stores.gaps
        self._positions: dict[str, float] = {}
        self._moved: set[str] = set()
        """Positions that are not stored yet."""
        self._kept = self._clock.monotonic()
        self._due: dict[str, float] = {}
        """When each source is read again; one without a time is read soon."""
        self._recent: deque[float] = deque(maxlen=BUDGET)
        self._reads = 0

    async def run(self) -> None:
        """Compare the sources of the adapter with what is known, again and again."""
        await self._begin()
        await self._adapter.prepare()
        # What waited for the connection arrives first.
        await self._clock.sleep(GRACE_SECONDS)
        while True:
            try:
                sources = await self._list()
            except (PostError, ServiceRefused, TimeoutError) as error:
                logger.info("%s cannot list what to compare: %s", self._name, error)
                await self._clock.sleep(LIST_SECONDS)
            else:
                await self._compare(sources)

    async def keep(self) -> None:
        """Store how far the sources were compared; what is not stored is read once more."""
        self._kept = self._clock.monotonic()
        moved = {name: self._positions[name] for name in self._moved}
        with suppress(StoreUnavailable):
            await self._gaps.move(self._name, moved)
            self._moved.difference_update(moved)

    async def _begin(self) -> None:
        """Find out how far the last run came; the first one does not look back."""
        now = self._clock.now()
        self._positions = await self._gaps.positions(self._name)
        if self._positions:
            away = Gap(max(self._positions.values()) + OVERLAP_SECONDS, now, "bridge")
            if away.ended - away.began > GAP_SECONDS:
                await self._note(away)
        else:
            last = await self._gaps.last_delivery(self._name)
            self._move(LISTED, now if last is None else last)
            await self.keep()

    async def _list(self) -> Sequence[Source]:
        """Ask the adapter for its sources; one that is new is read from the last list on."""
        began = self._clock.now()
        sources = await self._adapter.sources()
        for source in sources:
            if source.name not in self._positions:
                self._move(source.name, self._positions[LISTED])
        self._move(LISTED, began - OVERLAP_SECONDS)
        return sources

    async def _compare(self, sources: Sequence[Source]) -> None:
        """Read sources as they become due, until there may be others."""
        until = self._clock.monotonic() + LIST_SECONDS
        while (left := until - self._clock.monotonic()) > 0:
            source, pause = self._next(sources)
            if source is not None and pause <= 0:
                await self._look(source)
            else:
                await self._clock.sleep(min(pause, left, STEP_SECONDS))
            if self._clock.monotonic() - self._kept >= MINUTE:
                await self.keep()
            if self._adapter.gaps:
                while self._adapter.gaps:
                    await self._note(self._adapter.gaps.popleft())
                await self._clock.sleep(GRACE_SECONDS)
                return

    def _next(self, sources: Sequence[Source]) -> tuple[Source | None, float]:
        """Return the source to read next, and how long to wait for it."""
        now = self._clock.monotonic()

        def due(source: Source) -> float:
            return self._due.get(source.name, float("-inf"))

        ready = [each for each in sources if due(each) <= now]
        others_first = self._reads % OTHERS == OTHERS - 1
        first = min(
            ready or sources,
            key=lambda each: (bool(ready) and self._is_used(each) == others_first, due(each)),
            default=None,
        )
        if first is None:
            return None, LIST_SECONDS
        free = self._recent[0] + MINUTE if len(self._recent) == BUDGET else now
        return first, max(due(first), free) - now

    def _is_used(self, source: Source) -> bool:
        return self._clock.now() - source.used_at < USED_SECONDS

    async def _note(self, gap: Gap) -> None:
        """Record a gap, and have every source read soon, from its beginning on."""
        self._due.clear()
        for name, at in self._positions.items():
            self._positions[name] = min(at, gap.began)
        await persist(self._clock, self._gaps.add, replace(gap, adapter=self._name))

    async def _look(self, source: Source) -> None:
        """Read a source, and take what did not arrive."""
        self._reads += 1
        self._recent.append(self._clock.monotonic())
        began = self._clock.now()
        since = max(self._positions[source.name], began - self._reach())
        pause = USED_PAUSE_SECONDS if self._is_used(source) else PAUSE_SECONDS
        try:
            async with asyncio.timeout(LOOK_SECONDS), aclosing(source.find(since)) as found:
                async for delivery in found:
                    assert delivery.sent_at is not None, "a source says when it was sent"
                    if not await self._is_missed(delivery):
                        continue
                    if delivery.sent_at > began - GRACE_SECONDS:
                        pause = GRACE_SECONDS  # it may still arrive by itself
                        continue
                    await persist(self._clock, self._runtime.intake.take, delivery)
                    logger.info("%s missed %s", self._name, delivery.delivery_id)
        except (PostError, ServiceRefused, TimeoutError) as error:
            logger.info("%s cannot compare %s: %s", self._name, source.name, error)
        else:
            self._move(source.name, began - OVERLAP_SECONDS)
        self._due[source.name] = self._clock.monotonic() + pause

    def _reach(self) -> float:
        """Return how far back to look: as far as decisions are remembered."""
        settings = self._runtime.configuration.settings
        return (settings.retention_events_days or settings.retention_days) * DAY_SECONDS

    async def _is_missed(self, delivery: Delivery) -> bool:
        """Tell whether something in a delivery is for an agent, and unknown."""
        stores = self._runtime.stores
        if await stores.deliveries.outcome(self._name, delivery.delivery_id) is not None:
            return False
        try:
            inbound = self._adapter.parse(delivery)
        except (DeliveryRefused, DeliveryUnreadable):
            return False
        if not isinstance(inbound, Heard):
            return inbound is not None or self._adapter.naming(delivery) is not None
        if stores.decisions.decided(inbound.place, inbound.message_id):
            return False
        return not inbound.overheard or bool(stores.decisions.place(inbound.place).present)

    def _move(self, source: str, at: float) -> None:
        """Note how far a source was compared; the overlap does not reach before the first run."""
        self._positions[source] = max(at, self._positions.get(source, at))
        self._moved.add(source)
