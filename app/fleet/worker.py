"""Serves wake-ups with Procrastinate's worker, and sweeps up those that were lost.

A job ends as soon as its session is claimed, or refused: it never lasts as long as a turn.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

from procrastinate import App, BaseRetryStrategy, PsycopgConnector, RetryDecision
from procrastinate.jobs import Job, Status
from psycopg import AsyncConnection
from typing_extensions import override

from app.clock import Clock
from app.errors import BridgeError, StoreUnavailable
from app.retry import Retries
from app.store.members import COMMON, TASK, ClaimStore

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
