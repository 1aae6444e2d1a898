"""Lets a turn wait for other agents: without a slot and a folder, while its time is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal

from app.clock import Clock
from app.core.repositories.usage import Hold
from app.core.turns.limits.slots import Slot
from app.core.turns.limits.work_timer import WorkTimer
from app.tasks import Tasks

Outcome = Literal["ended", "late", "over"]
"""What came first: what was waited for, the bound, or the end of the turn that waits."""


class TurnWaits:
    """The waits of one turn for other agents."""

    def __init__(self, clock: Clock, slot: Slot, timer: WorkTimer, tasks: Tasks) -> None:
        self._clock = clock
        self._slot = slot
        self._timer = timer
        self._tasks = tasks
        self._over = asyncio.Event()
        self.hold = Hold()
        """The folder that the turn works in."""
        self.awaited: set[int] = set()
        """The delegations that it waits for."""

    def close(self) -> None:
        """End every wait: the turn has no agent that waits any more."""
        self._over.set()

    async def wait(
        self, delegation: int, ended: Coroutine[Any, Any, None], seconds: float
    ) -> Outcome:
        """Wait until a delegation has ended, at most this long.

        The turn goes on at the bound even if its slot is not free by then: it takes the slot as
        soon as it is.
        """
        waiting = self._tasks.start(ended, name=f"delegation {delegation}")
        bound = self._tasks.start(self._clock.sleep(seconds), name="patience")
        over = self._tasks.start(self._over.wait(), name="end of the turn")
        self.awaited.add(delegation)
        self._slot.lay_down()
        self.hold.leave()
        try:
            with self._timer.waiting():
                await asyncio.wait({waiting, bound, over}, return_when=asyncio.FIRST_COMPLETED)
                if not self._over.is_set():
                    self.awaited.discard(delegation)
                    back = self._tasks.start(self._go_on(), name="slot")
                    await asyncio.wait({back, bound, over}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not self._over.is_set():
                self._tasks.start(self._go_on(), name="slot")
            raise
        finally:
            for each in (waiting, bound, over):
                each.cancel()
            await asyncio.wait({waiting, bound, over})
        if waiting.done() and not waiting.cancelled():
            waiting.result()
            return "ended"
        return "over" if self._over.is_set() else "late"

    async def _go_on(self) -> None:
        """Take back what the turn needs; the folder first, which others hold without a slot."""
        await self.hold.take()
        await self._slot.pick_up()
