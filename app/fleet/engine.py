"""Runs turns on several machines: a job means that a session has work, and one member serves it.

The turn table is the truth: a job only says which member looks at it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from typing_extensions import override

from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.turn_context import TurnContext
from app.fleet.worker import FleetWorker, Hands
from app.model.types import Turn
from app.retry import persist
from app.signals import Signals, Topic
from app.store.jobs import JobStore

BUSY_SECONDS = 1.0
"""How long a job waits that would be one too many."""

State = Literal["new", "claimed", "refused", "elsewhere"]
STATES: Final[Mapping[str, State]] = {
    "granted": "claimed",
    "idle": "new",
    "full": "refused",
    "elsewhere": "elsewhere",
}
"""What a session is by the answer to a claim."""


@dataclass(slots=True)
class _Service:
    """A session that is served here."""

    job: int | None = None
    """The job that says so to others; None until it has one."""
    agent: str = ""
    state: State = "new"
    """Whether its turns run here, or why they do not: they are for any member, or have a job."""


class FleetTurnEngine(EmbeddedTurnEngine):
    """Runs turns here, of sessions that any member had served."""

    def __init__(
        self,
        context: TurnContext,
        jobs: JobStore,
        *,
        max_turns: int,
        total: int | None,
        of_agent: Mapping[str, int | None],
        recruit: Callable[[Hands], FleetWorker] | None,
        signals: Signals,
    ) -> None:
        """Run at most `max_turns` here, and `total` on all members together.

        `of_agent` sets lower limits for all turns of some agents. `recruit` makes what fetches
        jobs; None if this member runs no turns.
        """
        super().__init__(context, max_turns=max_turns, signals=signals)
        self._jobs = jobs
        self._total = total
        self._of_agent = of_agent
        self._served: dict[int, _Service] = {}
        """The sessions that are served here."""
        self._is_employed = False
        """Whether this member runs turns by now."""
        self._room = asyncio.Event()
        self._slots.on_room = self._room.set
        self._worker = None if recruit is None else recruit(self._hands())
        signals.on_sweep(self._look_for_work)

    def load(self) -> Mapping[str, int]:
        """Count the sessions that are served here, by agent; those that wait do not count."""
        return Counter(each.agent for each in self._served.values()) - self._slots.lent

    @override
    async def start(self) -> None:
        """Serve sessions from now on, if this member runs turns."""
        self._open = True
        if self._worker is not None:
            self._tasks.start(self._worker.run(), name="jobs")

    @override
    def resume(self) -> None:
        """Have every session served that has work."""
        self._tasks.start(persist(self._context.clock, self._jobs.queue_all), name="queue all")

    @override
    def submit(self, session_id: int) -> None:
        """Have the queued turns of a session run, here or by another member."""
        self._hurry(session_id)
        if session_id in self._served:
            return  # its next turn runs here, or is queued in the commit that ends its job
        self._signals.send(Topic.HURRY, session=session_id)
        if self._is_employed and not (self._draining or self._holding) and self._has_room():
            self._served[session_id] = _Service()
            self._tasks.start(self._serve_at_once(session_id), name=f"serve session {session_id}")
        else:
            queue = persist(self._context.clock, self._jobs.queue, session_id)
            self._tasks.start(queue, name=f"queue session {session_id}")

    @override
    async def drain(self, *, grace: float) -> None:
        """Fetch no more jobs; let running turns finish within the grace time."""
        self._draining = True
        self._room.set()
        if self._worker is not None:
            self._worker.stop()
        await super().drain(grace=grace)

    def _look_for_work(self) -> None:
        """Find the sessions whose turn was committed by a member that could not say so."""
        if self._signals.at_desk:
            self.resume()

    def _hands(self) -> Hands:
        async def reclaim() -> None:
            await persist(self._context.clock, self._jobs.reclaim, list(self._served))

        async def employ(number: int) -> None:
            await persist(self._context.clock, self._jobs.employ, number)
            self._is_employed = True

        return Hands(
            wait_for_room=self._wait_for_room,
            employ=employ,
            reclaim=reclaim,
            take=self._take,
            serve=self._serve_job,
            finish=self._finish_job,
        )

    def _has_room(self) -> bool:
        return sum(self.load().values()) < self._slots.count

    async def _wait_for_room(self) -> bool:
        """Wait until one more session can be served; others may have what waits for this one."""
        while not self._draining and not self._has_room():
            self._room.clear()
            await persist(self._context.clock, self._jobs.share)
            await self._room.wait()
        return not self._draining

    def _take(self, job: int, session_id: int) -> None:
        self._served.setdefault(session_id, _Service(job))

    async def _serve_job(self, job: int, session_id: int) -> None:
        """Serve the session of a job, unless it is served without one."""
        if self._has(job, session_id):
            await self._serve_session(session_id)

    async def _finish_job(self, job: int, session_id: int) -> None:
        if self._has(job, session_id):
            await self._finish(session_id)
        else:
            await persist(self._context.clock, self._jobs.put_back, job, BUSY_SECONDS, self.load())

    def _has(self, job: int, session_id: int) -> bool:
        service = self._served.get(session_id)
        return service is not None and service.job == job

    async def _serve_at_once(self, session_id: int) -> None:
        """Serve a session without a job; it gets one with its first turn."""
        try:
            await self._serve_session(session_id)
        finally:
            await self.ended(session_id)
            await self._finish(session_id)

    async def _serve_session(self, session_id: int) -> None:
        """Serve a session until it has nothing to do."""
        super().submit(session_id)
        await self.ended(session_id)

    @override
    def _may_begin(self, turn: Turn) -> bool:
        service = self._served[turn.session]
        if not super()._may_begin(turn):
            service.state = "refused"  # another member may have it
        return service.state in {"new", "claimed"}

    @override
    async def _begin(self, turn: Turn) -> bool:
        """Start a queued turn, if one more may run at all."""
        service = self._served[turn.session]
        if service.state == "claimed":
            return await super()._begin(turn)
        service.agent = turn.surface.agent
        claim = await persist(
            self._context.clock,
            self._jobs.claim,
            turn,
            service.job,
            self.load(),
            total=self._total,
            of_agent=self._of_agent.get(service.agent),
        )
        service.state = STATES[claim.answer]
        service.job = claim.job or service.job
        if claim.has_moved:
            # Its conversation went on elsewhere.
            await self._context.live.end(turn.session)
        return claim.answer == "granted"

    async def _finish(self, session_id: int) -> None:
        service = self._served.pop(session_id)
        self._room.set()
        clock, load = self._context.clock, self.load()
        if service.job is not None and service.state == "refused":
            await persist(clock, self._jobs.put_back, service.job, BUSY_SECONDS, load)
        elif service.job is not None:
            await persist(clock, self._jobs.finish, service.job, load)
        elif service.state == "refused":
            await persist(clock, self._jobs.queue, session_id)
        elif service.state == "new" and self._context.turns.next_turn(session_id) is not None:
            self.submit(session_id)  # it came when this one had looked for the last time
