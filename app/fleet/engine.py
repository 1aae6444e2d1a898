"""Runs turns on several machines: a job means that a session has work, and one member serves it.

The turn table is the truth: a job only says which member looks at it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping

from typing_extensions import override

from app.core.retry import persist
from app.core.signals import Signals, Topic
from app.core.stores.members import JobStore
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.turn_context import TurnContext
from app.fleet.worker import FleetWorker, Hands

BUSY_SECONDS = 1.0
"""How long a job waits that would be one too many."""


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
        self._taken: dict[int, tuple[int, str]] = {}
        """The session and the agent of each job that is done here."""
        self._refused: set[int] = set()
        self._room = asyncio.Event()
        self._slots.on_room = self._room.set
        self._worker = None if recruit is None else recruit(self._hands())
        signals.on_sweep(self._look_for_work)

    def load(self) -> Mapping[str, int]:
        """Count the sessions that are served here, by agent; those that wait do not count."""
        return Counter(agent for _, agent in self._taken.values()) - self._slots.lent

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
        self._signals.send(Topic.HURRY, session=session_id)
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
            await persist(self._context.clock, self._jobs.reclaim, list(self._taken))

        async def employ(number: int) -> None:
            await persist(self._context.clock, self._jobs.employ, number)

        return Hands(
            wait_for_room=self._wait_for_room,
            employ=employ,
            reclaim=reclaim,
            take=self._take,
            serve=self._serve_job,
            finish=self._finish,
        )

    async def _wait_for_room(self) -> bool:
        """Wait until one more session can be served; others may have what waits for this one."""
        while not self._draining and sum(self.load().values()) >= self._slots.count:
            self._room.clear()
            await persist(self._context.clock, self._jobs.share)
            await self._room.wait()
        return not self._draining

    def _take(self, job: int, session_id: int) -> None:
        session = self._context.sessions.session(session_id)
        self._taken[job] = (session_id, session.key.agent if session is not None else "")

    async def _serve_job(self, job: int, session_id: int) -> None:
        """Serve a session until it has nothing to do, if one more turn may run at all."""
        context, (_, agent) = self._context, self._taken[job]
        turn = context.turns.next_turn(session_id)
        if turn is not None and not self._may_begin(turn.id):
            self._refused.add(job)  # another member may have it
            return
        claim = await persist(
            context.clock,
            self._jobs.claim,
            session_id,
            self.load(),
            total=self._total,
            of_agent=self._of_agent.get(agent),
        )
        if claim.answer != "granted":
            self._refused.update({job} if claim.answer == "full" else ())
            return
        if claim.has_moved:
            # Its conversation went on elsewhere.
            await context.live.end(session_id)
        super().submit(session_id)
        await self.ended(session_id)

    async def _finish(self, job: int) -> None:
        self._taken.pop(job, None)
        self._room.set()
        clock, load = self._context.clock, self.load()
        if job in self._refused:
            self._refused.discard(job)
            await persist(clock, self._jobs.put_back, job, BUSY_SECONDS, load)
        else:
            await persist(clock, self._jobs.finish, job, load)
