"""Runs turns on several machines: each session is served by the member that claims it.

A turn begins only with a claim, and the commit of a claim sees that no other turn of its session
runs: what members know of each other beyond that is a hint.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.turn_context import TurnContext
from app.fleet.worker import FleetWorker
from app.model.types import Turn
from app.retry import persist
from app.signals import Topic
from app.store.members import ClaimStore, Reason
from app.tasks import Tasks


@dataclass(slots=True)
class _Service:
    """A session that is served here."""

    why: Reason
    agent: str = ""
    answer: str = ""
    """The answer to the last claim on it; empty before the first."""
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first claim is answered, or none is needed."""


class FleetTurnEngine(EmbeddedTurnEngine):
    """Runs turns here, and has those run elsewhere that other members run better."""

    def __init__(
        self,
        context: TurnContext,
        claims: ClaimStore,
        *,
        max_turns: int,
        total: int | None,
        worker: FleetWorker | None,
    ) -> None:
        """Run at most `max_turns` here, and `total` on all members together.

        `worker` hears which sessions wait; None if this member runs no turns.
        """
        super().__init__(context, max_turns=max_turns)
        self._claims = claims
        self._total = total
        self._worker = worker
        self._hearing = Tasks("jobs", is_held=False)
        self._served: dict[int, _Service] = {}
        """The sessions that are served here."""
        self._refused: dict[int, None] = {}
        """The sessions that no member had room for; their jobs are tried again meanwhile."""
        self._slots.on_room = self._take_refused

    def load(self) -> Mapping[str, int]:
        """Count the sessions that are served here, by agent; those that wait do not count."""
        return Counter(each.agent for each in self._served.values()) - self._slots.lent

    @override
    async def start(self) -> None:
        """Serve sessions from now on, if this member runs turns."""
        self._open = True
        if self._worker is not None:
            self._hearing.start(self._worker.run(self.take), name="serve")

    @override
    def resume(self) -> None:
        """Have every session served that waits."""
        everything = persist(self._context.clock, self._claims.announce_missing)
        self._tasks.start(everything, name="announce all")

    @override
    def submit(self, session_id: int) -> None:
        """Have the queued turns of a session run, here or by another member."""
        self._hurry(session_id)
        if session_id in self._served:
            return  # its member looks for the next turn once more before it leaves the session
        self._signals.send(Topic.HURRY, session=session_id)
        if not self._holding and self._has_room():
            self._serve_here(session_id, "submitted")
        else:
            announced = persist(self._context.clock, self._claims.announce, session_id)
            self._tasks.start(announced, name=f"announce session {session_id}")

    async def take(self, session_id: int) -> bool:
        """Claim a session that was announced; False if no member has room for it."""
        if session_id in self._served:
            return True
        if self._has_room():
            service = self._serve_here(session_id, "announced")
            await service.decided.wait()
            if service.answer != "full":
                return True
        elif await persist(self._context.clock, self._claims.pass_on, session_id, self.load()):
            return True
        self._refused[session_id] = None
        return False

    @override
    async def drain(self, *, grace: float) -> None:
        """Take no more sessions; let running turns finish within the grace time."""
        self._draining = True
        await self._hearing.close()
        await super().drain(grace=grace)

    def _has_room(self) -> bool:
        is_serving = self._worker is not None and self._open and not self._draining
        return is_serving and sum(self.load().values()) < self._slots.count

    def _take_refused(self) -> None:
        """Serve what had to wait, as far as there is room now."""
        while self._refused and not self._holding and self._has_room():
            session_id = next(iter(self._refused))
            del self._refused[session_id]
            if session_id not in self._served:
                self._serve_here(session_id, "announced")

    def _serve_here(self, session_id: int, why: Reason) -> _Service:
        service = self._served[session_id] = _Service(why)
        self._tasks.start(self._serve_session(session_id), name=f"serve session {session_id}")
        return service

    async def _serve_session(self, session_id: int) -> None:
        """Serve a session until it has nothing to do here."""
        try:
            super().submit(session_id)
            await self.ended(session_id)
        finally:
            await self.ended(session_id)
            await self._leave(session_id)

    async def _leave(self, session_id: int) -> None:
        service, clock = self._served.pop(session_id), self._context.clock
        service.decided.set()
        if service.why == "served":
            await persist(clock, self._claims.release, session_id, self.load())
        elif service.answer == "full" and service.why == "submitted":
            await persist(clock, self._claims.announce, session_id)
        elif service.answer in {"", "idle"} and self._context.stores.turns.next_turn(session_id):
            self.submit(session_id)  # it came when this one had looked for the last time
        self._take_refused()

    @override
    def _may_begin(self, turn: Turn) -> bool:
        service = self._served[turn.session]
        if not super()._may_begin(turn):
            service.answer = "full"  # another member may have it
        return service.answer in {"", "granted", "idle"}

    @override
    async def _begin(self, turn: Turn) -> bool:
        """Start a queued turn, if one more may run at all."""
        service = self._served[turn.session]
        service.agent = turn.surface.agent
        agent = self._context.agents.get(service.agent)
        claim = await persist(
            self._context.clock,
            self._claims.claim,
            turn,
            self.load(),
            service.why,
            total=self._total,
            of_agent=agent.max_turns if agent else None,
        )
        service.answer = claim.answer
        if claim.answer == "granted":
            service.why = "served"
        service.decided.set()
        if claim.has_moved:
            # Its conversation went on elsewhere.
            await self._context.live.end(turn.session)
        return claim.answer == "granted"
