"""Fetching jobs with Procrastinate: nothing that was told of is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import pytest
from procrastinate import PsycopgConnector
from procrastinate.jobs import Job, Notification
from procrastinate.manager import JobManager

from app.clock import SystemClock
from app.fleet.worker import Hands, _Jobs

QUEUES = ["common", "ada"]
JOB = Job(id=1, lock="7", queueing_lock="7", task_name="serve", queue="common")


class Line:
    """A line on which members are told of jobs."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def listen(self, channels: Sequence[str], hear: Callable[[str], None]) -> None:
        assert channels == [f"procrastinate_queue_v1#{each}" for each in QUEUES]
        self.hear = hear
        self.opened.set()
        await asyncio.Event().wait()


async def _nothing(*_: object) -> None:
    """Do nothing."""


async def _yes() -> bool:
    return True


def _jobs(line: Line, taken: list[tuple[int, int]]) -> _Jobs:
    hands = Hands(
        wait_for_room=_yes,
        employ=_nothing,
        reclaim=_nothing,
        take=lambda *job: taken.append(job),
        serve=_nothing,
        finish=_nothing,
    )
    return _Jobs(PsycopgConnector(), hands, SystemClock(), line.listen)


async def test_a_job_that_is_told_of_while_another_is_looked_for_is_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line, taken, told = Line(), list[tuple[int, int]](), asyncio.Event()
    jobs = _jobs(line, taken)
    found: list[Job | None] = [None, JOB]

    async def fetch(_manager: JobManager, _queues: Iterable[str], _worker: int) -> Job | None:
        line.hear("{}")
        await told.wait()
        return found.pop(0)

    async def note(*, channel: str, notification: Notification) -> None:
        told.set()

    monkeypatch.setattr(JobManager, "fetch_job", fetch)
    listening = asyncio.create_task(jobs.listen_for_jobs(on_notification=note, queues=QUEUES))
    async with asyncio.timeout(5):
        await line.opened.wait()
        assert await jobs.fetch_job(QUEUES, 1) is JOB
    listening.cancel()
    assert taken == [(1, 7)]


async def test_a_job_that_was_put_back_is_looked_for_when_its_time_has_come() -> None:
    line, told = Line(), asyncio.Event()
    jobs = _jobs(line, [])

    async def note(*, channel: str, notification: Notification) -> None:
        assert notification["type"] == "job_inserted"
        told.set()

    listening = asyncio.create_task(jobs.listen_for_jobs(on_notification=note, queues=QUEUES))
    async with asyncio.timeout(5):
        await line.opened.wait()
        began = asyncio.get_running_loop().time()
        line.hear('{"seconds": 0.05}')
        await told.wait()
    listening.cancel()
    assert asyncio.get_running_loop().time() - began >= 0.05
