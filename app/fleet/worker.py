"""Fetches jobs with Procrastinate: over faults of the database, and only as many as fit.

Ending a job goes through the store, so that a member that was removed ends no job of another one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback
from procrastinate.worker import Worker
from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout
from typing_extensions import override

from app.core.outage import hold
from app.core.ports import Clock
from app.core.retry import retry
from app.core.stores.members import COMMON, TASK
from app.errors import StoreUnavailable

logger = logging.getLogger(__name__)

POLL_SECONDS = 2.0
"""How often jobs are looked for that no notification tells of: those put back for a while."""
AGAIN_SECONDS = 1.0
"""Pause after a fault of the database."""
CONNECTIONS = 2
"""One fetches while another one beats."""
POOL_SECONDS = 10.0
"""How long a query waits for a connection while the database is away."""
HEARTBEAT_SECONDS = 60.0
PRUNE_SECONDS = 30 * 24 * 3600.0
"""Members are removed by other members; what those forgot goes after a month."""
MOST_JOBS = 10_000
"""Jobs at once; how many there really are is decided before each is fetched."""
FAULTS = (ConnectorException, PoolTimeout, OSError)


@dataclass(frozen=True, slots=True)
class Hands:
    """What an engine does with jobs."""

    wait_for_room: Callable[[], Awaitable[bool]]
    """Waits until one more job fits; False if no more are wanted."""
    employ: Callable[[int], Awaitable[None]]
    """Notes the number under which jobs are fetched."""
    reclaim: Callable[[], Awaitable[None]]
    """Frees jobs that may have been fetched without an answer."""
    take: Callable[[int, int], None]
    """Is told of a job that was fetched, and its session."""
    serve: Callable[[int, int], Coroutine[Any, Any, None]]
    """Does the work of a job for its session."""
    finish: Callable[[int], Awaitable[None]]
    """Ends a job."""


class _Jobs(JobManager):
    """Procrastinate's jobs, fetched one by one as there is room."""

    def __init__(self, connector: PsycopgConnector, hands: Hands, clock: Clock) -> None:
        super().__init__(connector)
        self._hands = hands
        self._clock = clock
        self._is_doubtful = False

    @override
    async def register_worker(self) -> int:
        number = await super().register_worker()
        await self._hands.employ(number)
        return number

    @override
    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        if not await self._hands.wait_for_room():
            return None
        try:
            if self._is_doubtful:
                await self._hands.reclaim()
                self._is_doubtful = False
            job = await super().fetch_job(queues, worker_id)
            if job is not None:
                assert job.id is not None
                assert job.lock is not None
                self._hands.take(job.id, int(job.lock))
        except (*FAULTS, StoreUnavailable) as error:
            self._is_doubtful = True
            logger.warning("could not fetch a job: %s", error.__cause__ or error)
            return None
        return job

    @override
    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        assert job.id is not None
        await self._hands.finish(job.id)

    @override
    async def update_heartbeat(self, worker_id: int) -> None:
        try:
            await super().update_heartbeat(worker_id)
        except FAULTS as error:
            logger.debug("no heartbeat: %s", error)

    @override
    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        async def listen() -> None:
            await super(_Jobs, self).listen_for_jobs(on_notification=on_notification, queues=queues)

        await retry(self._clock, listen, repeat(AGAIN_SECONDS), on=FAULTS)


async def _hurry(connection: AsyncConnection[Any]) -> None:
    """Let no fetch wait for the disk: the store knows who serves a session, and refuses another."""
    await connection.execute("set synchronous_commit = off")
    await connection.commit()


class FleetWorker:
    """Procrastinate's worker, as this bridge runs it."""

    def __init__(self, address: str, name: str, hands: Hands, clock: Clock) -> None:
        """Prepare to fetch from a database the jobs for all members and for this one."""
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        connector = PsycopgConnector(
            conninfo=address,
            min_size=1,
            max_size=CONNECTIONS,
            timeout=POOL_SECONDS,
            configure=_hurry,
        )
        self._clock = clock
        self._app = App(connector=connector)
        self._app.job_manager = _Jobs(connector, hands, clock)

        async def serve(context: JobContext, *, session: int) -> None:
            assert context.job.id is not None
            await hold(hands.serve(context.job.id, session))

        self._app.task(name=TASK, pass_context=True)(serve)
        self._worker = Worker(
            self._app,
            queues=[COMMON, name],
            name=name,
            concurrency=MOST_JOBS,
            fetch_job_polling_interval=POLL_SECONDS,
            install_signal_handlers=False,
            update_heartbeat_interval=HEARTBEAT_SECONDS,
            stalled_worker_timeout=PRUNE_SECONDS,
        )

    async def run(self) -> None:
        """Fetch and serve until `stop`."""
        await retry(self._clock, self._app.open_async, repeat(AGAIN_SECONDS), on=FAULTS)
        try:
            # A member that fetches nothing would keep its place and its sessions.
            await retry(self._clock, self._worker.run, repeat(AGAIN_SECONDS), on=Exception)
        finally:
            await self._app.close_async()

    def stop(self) -> None:
        """Fetch no more; `run` ends with the last job."""
        self._worker.stop()  # type: ignore[no-untyped-call] # it has no types
