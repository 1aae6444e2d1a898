"""Measures how a bridge is now: its store, its slots, its processes and its disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from app.children.disk import DiskSpace
from app.core.turns.agents import LiveAgents
from app.core.turns.engine import EmbeddedTurnEngine
from app.errors import StoreUnavailable
from app.metrics import Check, Vital
from app.store.upkeep import VitalStore

Ready = Callable[[], Awaitable[Sequence[Check]]]
"""Checks each part of the bridge."""


class Vitals:
    """How one bridge is."""

    def __init__(
        self,
        store: VitalStore,
        engine: EmbeddedTurnEngine,
        live: LiveAgents,
        disk: DiskSpace,
        members: Callable[[], Sequence[Vital]],
    ) -> None:
        """Measure a bridge; `members` measures those that share its database."""
        self._store = store
        self._engine = engine
        self._live = live
        self._disk = disk
        self._members = members

    async def read(self, ready: Ready, agents: Sequence[str]) -> Sequence[Vital]:
        """Measure everything; agents without a process count with zero."""
        used, slots = self._engine.slots
        alive = {**dict.fromkeys(agents, 0), **self._live.processes()}
        checks = await ready()
        return [
            *await self._measure_store(),
            *await asyncio.to_thread(self._measure_disk),
            *self._members(),
            Vital("slots", slots),
            Vital("slots_used", used),
            *(Vital("processes", number, (("agent", name),)) for name, number in alive.items()),
            Vital("ready", float(all(check.ok for check in checks))),
        ]

    async def _measure_store(self) -> Sequence[Vital]:
        """Measure what waits in the store; nothing while it is away."""
        try:
            return await self._store.read()
        except StoreUnavailable:
            return ()

    def _measure_disk(self) -> list[Vital]:
        return [
            Vital("disk_free_bytes", self._disk.free()),
            Vital("disk_watermark_bytes", self._disk.watermark()),
        ]
