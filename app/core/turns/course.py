"""Keeps the phase of one running turn, and the task that runs it."""

from __future__ import annotations

import asyncio

from app.clock import Clock
from app.model.phase import CLOSED, MEASURED, STAGES, Event, Phase, advance
from app.model.ports import Counters


class Course:
    """How far one turn has come."""

    def __init__(self, turn: int, clock: Clock, counters: Counters) -> None:
        self._turn = turn
        self.phase = Phase.PREPARING
        self._clock = clock
        self._counters = counters
        self._since = clock.monotonic()
        self._task = asyncio.current_task()
        self._not_parking = asyncio.Event()
        self._not_parking.set()

    @property
    def is_closed(self) -> bool:
        """Whether nothing the agent says or asks counts any more."""
        return self.phase in CLOSED

    def take(self, event: Event) -> bool:
        """Apply an event; returns whether it changed the phase."""
        before, self.phase = self.phase, advance(self.phase, event)
        if self.phase is Phase.PARKING:
            self._not_parking.clear()
        else:
            self._not_parking.set()
        if self.phase is before:
            return False
        now = self._clock.monotonic()
        if before in MEASURED:
            seconds, wall = now - self._since, self._clock.now()
            self._counters.observe("turn_phase_seconds", seconds, phase=before)
            self._counters.trace(STAGES[before], self._turn, wall - seconds, wall)
        self._since = now
        return True

    async def wait_for_parking(self) -> None:
        """Wait while the store decides whether the turn is parked."""
        await self._not_parking.wait()

    def cancel(self) -> None:
        """Cancel the task that runs the turn."""
        if self._task is not None:
            self._task.cancel()

    def recover(self) -> bool:
        """Take back a cancellation that came from the turn itself; returns whether it did."""
        if self.phase not in {Phase.PARKED, Phase.STOPPING} or self._task is None:
            return False
        self._task.uncancel()
        return True
