"""Runs turns on several machines: each session is served by the member that claims it.

A turn begins only with a claim, and the commit of a claim sees that no other turn of its session
runs: what members know of each other beyond that is a hint. The job of a wake-up ends as soon as
its session is claimed, or refused: it never lasts as long as a turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

from procrastinate import App, BaseRetryStrategy, PsycopgConnector, RetryDecision
from procrastinate.jobs import Job, Status
from psycopg import AsyncConnection
from typing_extensions import override

from app.clock import Clock
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.turn_context import TurnContext
from app.errors import BridgeError, StoreUnavailable
from app.model.types import Turn
from app.retry import Retries, persist
from app.signals import Topic
from app.store.members import COMMON, TASK, ClaimStore, Reason
from app.tasks import Tasks

logger = logging.getLogger(__name__)

Take = Callable[[int], Awaitable[bool]]
"""ClaimStore a session if it waits; False if there is no room for it on any member."""

AT_ONCE = 8
"""Sessions that are claimed at the same time: each takes a commit, and they share it."""
POLL_SECONDS = 1.0
"""How often jobs are looked for: Procrastinate forgets a notification that comes while it looks,
and sends none for a job that waits for its next attempt."""
SWEEP = "* * * * * */10"
"""Every ten seconds, as cron writes it with seconds at the end."""
FULL_SECONDS = 1.0
"""How long a session waits at first when no member has room; a member that gets some does not
wait for that."""
LONGEST_SECONDS = 8.0
AGAIN_SECONDS = 1.0
"""Pause after a fault of the database."""
CONNECTIONS = 4
POOL_SECONDS = 10.0
"""How long a query waits for a connection while the database is away."""
STOP_SECONDS = 1.0
"""How long stopping waits for claims."""


class NoRoom(BridgeError):
    """No member has room for a session."""


class _TryOthers(BaseRetryStrategy):
    """Gives what had no room to any member, after a while."""

    @override
    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        if not isinstance(exception, NoRoom):
            return None
        pause = min(FULL_SECONDS * 2 ** min(job.attempts, 10), LONGEST_SECONDS)
        return RetryDecision(retry_at=datetime.now(UTC) + timedelta(seconds=pause), queue=COMMON)


class FleetWorker:
    """Procrastinate's worker, as one member runs it."""

    def __init__(
        self, address: str, name: str, claims: ClaimStore, clock: Clock, *, lease_seconds: float
    ) -> None:
        """Prepare to serve what is announced to all members and to this one."""
        self._name = name
        self._claims = claims
        self._clock = clock
        self._lease = lease_seconds
        self._app = App(
            connector=PsycopgConnector(
                conninfo=address,
                min_size=1,
                max_size=CONNECTIONS,
                timeout=POOL_SECONDS,
                configure=_hurry,
            )
        )

    async def run(self, take: Take) -> None:
        """Serve until this is cancelled, over faults of the database."""

        @self._app.task(name=TASK, retry=_TryOthers())
        async def serve(session: int) -> None:
            if not await take(session):
                raise NoRoom(f"session {session}")

        @self._app.periodic(cron=SWEEP)
        @self._app.task(name="sweep", queue=COMMON, queueing_lock="sweep")
        async def sweep(timestamp: int) -> None:  # noqa: ARG001 - when it was due
            await self.sweep()

        retries = Retries(self._clock, repeat(AGAIN_SECONDS))
        while True:
            try:
                async with self._app.open_async():
                    await self._app.run_worker_async(
                        queues=[COMMON, self._name],
                        name=self._name,
                        concurrency=AT_ONCE,
                        fetch_job_polling_interval=POLL_SECONDS,
                        shutdown_graceful_timeout=STOP_SECONDS,
                        delete_jobs="always",
                        install_signal_handlers=False,
                        update_heartbeat_interval=self._lease / 5,
                        stalled_worker_timeout=self._lease,
                    )
                await retries.wait(StoreUnavailable("jobs could not be fetched"))
            except Exception as error:  # noqa: BLE001 - else it would keep its sessions and serve none
                await retries.wait(error)

    async def sweep(self) -> None:
        """Remove the jobs that are in the way, and announce the sessions that have none."""
        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self._lease):
            # Its session is announced below, if it still waits.
            await manager.finish_job(job, Status.FAILED, delete_job=True)
        queues, known = await self._claims.list_queues(), set[Any]()
        for job in await manager.list_jobs_async(task=TASK, status=Status.TODO.value):
            session = job.task_kwargs["session"]
            if job.queue not in queues or session in known:
                assert job.id is not None
                await manager.cancel_job_by_id_async(job.id, delete_job=True)
            else:
                known.add(session)
        await self._claims.announce_missing(known)


async def _hurry(connection: AsyncConnection[Any]) -> None:
    """Let no job wait for the disk: what a server that crashes forgets of it a sweep makes good."""
    await connection.set_autocommit(True)  # each query is one statement
    await connection.execute("set synchronous_commit = off")


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
