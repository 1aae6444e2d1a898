"""Limits how many turns run at once, first come, first served."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from app.agents.agent import Agent


class Slots:
    """The slots that turns run in."""

    def __init__(self, count: int, *, agents: Mapping[str, Agent] | None = None) -> None:
        """Have `count` slots; fewer for agents that have a limit of their own."""
        self.count = count
        self.used = 0
        self.lent: Counter[str] = Counter()
        """How many turns wait without their slot, by agent."""
        self.on_room: Callable[[], None] = lambda: None
        """Is told when a turn begins to wait without its slot."""
        self._free = asyncio.Semaphore(count)
        self._agents: Mapping[str, Agent] = agents or {}
        self._own: dict[tuple[str, int], asyncio.Semaphore] = {}

    @asynccontextmanager
    async def one(self, agent: str = "") -> AsyncIterator[Slot]:
        """Wait for a slot and hold it; the agent's limit first, so that others need not wait."""
        found = self._agents.get(agent)
        fewer = found.max_turns if found else None
        slot = Slot(self, agent, self._free)
        if fewer is not None:
            own = self._own.setdefault((agent, fewer), asyncio.Semaphore(fewer))
            slot = Slot(self, agent, own, self._free)
        await slot.take()
        try:
            yield slot
        finally:
            slot.close()


class Slot:
    """One turn's slot, given back while the turn waits for people."""

    def __init__(self, slots: Slots, agent: str, *free: asyncio.Semaphore) -> None:
        self._slots = slots
        self._agent = agent
        self._free = free
        self._held = False
        self._lent = False
        self._waiting = 0
        self._taking = asyncio.Lock()

    async def take(self) -> None:
        """Wait for a free slot; two waiters of the same turn take it once."""
        async with self._taking:
            if not self._held:
                await self._acquire()
                self._held = True
                self._slots.used += 1
                self._note(lent=False)

    def leave(self) -> None:
        """Give the slot back, if it is held."""
        if self._held:
            self._held = False
            self._slots.used -= 1
            self._release(len(self._free))

    def close(self) -> None:
        """Give the slot back for good."""
        self.leave()
        self._note(lent=False)

    def _note(self, *, lent: bool) -> None:
        if lent != self._lent:
            self._lent = lent
            self._slots.lent[self._agent] += 1 if lent else -1
            self._slots.on_room()

    async def _acquire(self) -> None:
        taken = 0
        try:
            for free in self._free:
                await free.acquire()
                taken += 1
        except BaseException:
            self._release(taken)
            raise

    def _release(self, taken: int) -> None:
        for free in self._free[:taken]:
            free.release()

    def lay_down(self) -> None:
        """Give the slot back for a wait."""
        self._waiting += 1
        self.leave()
        self._note(lent=True)

    async def pick_up(self) -> None:
        """Take the slot again after a wait, unless the turn waits for something else as well."""
        self._waiting -= 1
        if not self._waiting:
            await self.take()
        if self._waiting:
            self._note(lent=True)
            self.leave()  # another wait began while this one waited for the slot

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[None]:
        """Give the slot back while waiting; a turn that ends meanwhile does not retake it."""
        self.lay_down()
        try:
            yield
        except BaseException:
            self._waiting -= 1
            raise
        await self.pick_up()
