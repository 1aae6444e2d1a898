"""Fetches jobs with Procrastinate: over faults of the database, and only as many as fit.

Ending a job goes through the store, so that a member that was removed ends no job of another one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from procrastinate import App, JobContext, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, JobInserted, Status
from procrastinate.manager import JobManager, NotificationCallback, get_channel_for_queues
from procrastinate.worker import Worker
from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout
from typing_extensions import override

from app.clock import Clock
from app.errors import StoreUnavailable
from app.model.members import COMMON, TASK
from app.outage import hold
from app.retry import retry

logger = logging.getLogger(__name__)

POLL_SECONDS = 10.0
"""How often jobs are looked for in case that a notification was lost."""
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
_INSERTED: JobInserted = {"type": "job_inserted", "job_id": 0}
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
    finish: Callable[[int, int], Awaitable[None]]
    """Ends a job of a session."""


Listen = Callable[[Sequence[str], Callable[[str], None]], Coroutine[Any, Any, None]]
"""Has a function called with what is told on some channels, until it is cancelled.

Whenever that begins it is called with an empty text, because something may have been told before.
"""


class _Jobs(JobManager):
    """Procrastinate's jobs, fetched one by one as there is room."""

    def __init__(
        self, connector: PsycopgConnector, hands: Hands, clock: Clock, listen: Listen
    ) -> None:
        super().__init__(connector)
        self._hands = hands
        self._clock = clock
        self._listen = listen
        self._is_doubtful = False
        self._notices = 0
        """Counts what was told of jobs."""

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
            job = await self._fetch(queues, worker_id)
            if job is not None:
                assert job.id is not None
                assert job.lock is not None
                self._hands.take(job.id, int(job.lock))
        except (*FAULTS, StoreUnavailable) as error:
            self._is_doubtful = True
            logger.warning("could not fetch a job: %s", error.__cause__ or error)
            return None
        return job

    async def _fetch(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Fetch a job; look again if one was told of meanwhile, which the worker would forget."""
        while True:
            seen = self._notices
            job = await super().fetch_job(queues, worker_id)
            if job is not None or self._notices == seen:
                return job

    @override
    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        assert job.id is not None
        assert job.lock is not None
        await self._hands.finish(job.id, int(job.lock))

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
        """Have the worker fetch when it is told of a job, or once a job put back may be fetched."""
        loop, told = asyncio.get_running_loop(), asyncio.Event()

        def note() -> None:
            self._notices += 1
            told.set()

        def hear(words: str) -> None:
            loop.call_later(_read_delay(words), note)

        async def tell() -> None:
            while await told.wait():
                told.clear()
                await on_notification(channel="", notification=_INSERTED)

        async with asyncio.TaskGroup() as group:
            group.create_task(tell(), name="told of jobs")
            group.create_task(
                self._listen(list(get_channel_for_queues(queues)), hear), name="listen for jobs"
            )


def _read_delay(words: str) -> float:
    """Read when a job may be fetched, before the next poll; without a number, look now."""
    try:
        seconds = json.loads(words or "{}").get("seconds", 0.0)
        return min(max(0.0, float(seconds)), POLL_SECONDS)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return 0.0


async def _hurry(connection: AsyncConnection[Any]) -> None:
    """Let no fetch wait for the disk: the store knows who serves a session, and refuses another."""
    await connection.set_autocommit(True)  # each query is one statement
    await connection.execute("set synchronous_commit = off")


class FleetWorker:
    """Procrastinate's worker, as this bridge runs it."""

    def __init__(self, address: str, name: str, hands: Hands, clock: Clock, listen: Listen) -> None:
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
        self._app.job_manager = _Jobs(connector, hands, clock, listen)

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
            abort_job_polling_interval=PRUNE_SECONDS,  # no job is aborted
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
