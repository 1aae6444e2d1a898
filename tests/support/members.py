"""Several members of one installation in one process: their signals, and cores on one store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from typing_extensions import override

from app.clock import SystemClock
from app.model.inbound import Accepted
from app.signals import Switchboard
from tests.support.desk import PATIENCE_SECONDS, Desk, Rules, Stir, join_desk
from tests.support.memory import delivery, heard, open_stores

MOST_BYTES = 7_999
"""What PostgreSQL takes."""


class Hub:
    """A channel on which every member hears every text: its own ones too, as on PostgreSQL."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.said: list[str] = []
        self.stir = Stir()
        self.lost = False
        """Whether everything is lost."""

    def line(self, name: str, *, is_leader: bool = False) -> Line:
        """Let a member join."""
        line = self.lines[name] = Line(self, name)
        line.is_leader = is_leader
        return line

    async def members(self) -> Collection[str]:
        """Name those that are alive."""
        return tuple(self.lines)

    def carry(self, text: str) -> None:
        """Carry a text to everyone."""
        assert len(text.encode()) <= MOST_BYTES
        self.said.append(text)
        loop = asyncio.get_running_loop()
        loop.call_soon(self.stir)
        if not self.lost:
            for line in self.lines.values():
                loop.call_soon(line.receive, text)
            loop.call_soon(self.stir)


class Line(Switchboard):
    """One member's signals."""

    def __init__(self, hub: Hub, name: str) -> None:
        super().__init__(name, hub.members)
        self._hub = hub

    @override
    def transmit(self, text: str) -> None:
        self._hub.carry(text)


@dataclass
class Members:
    """A desk, another front and a worker on one store."""

    hub: Hub
    desk: Desk
    front: Desk
    worker: Desk

    async def ask(self, text: str) -> Accepted:
        """Let the front take a message to the agent; wait until it is decided."""
        said = replace(heard(text), mentions=("demo",))
        arrived = delivery(next(iter(self.front.adapters)))
        self.desk.inbound[arrived.delivery_id] = said
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.front.intake.settle(arrived)

    async def until(self, seen: Callable[[], bool]) -> None:
        """Wait until something is so at one of them."""
        await self.hub.stir.until(seen)

    def sweep(self) -> None:
        """Let every member look again."""
        for line in self.hub.lines.values():
            line.sweep()


@asynccontextmanager
async def open_members(folder: Path, rules: Rules | None = None) -> AsyncIterator[Members]:
    """Run three members; the worker looks for turns whenever there is news."""
    hub, clock, rules = Hub(), SystemClock(), rules or Rules()
    with open_stores(folder, clock) as (database, stores):
        desk, front, worker = (
            join_desk(
                folder,
                clock,
                rules,
                database,
                stores,
                signals=hub.line(name, is_leader=name == "desk"),
                stir=hub.stir,
            )
            for name in ("desk", "front", "worker")
        )
        worker.feed.listeners.append(worker.engine.submit)
        await worker.engine.start()
        desk.ledger.start()
        desk.intake.start()
        desk.schedules.start()
        desk.delegations.start()
        try:
            yield Members(hub, desk, front, worker)
        finally:
            for each in (worker, front, desk):
                await each.close()
            for line in hub.lines.values():
                await line.close()
