"""Wake-ups over Procrastinate: they are served, tried again, swept up, and taken over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from procrastinate import App, PsycopgConnector
from procrastinate.jobs import Job

from app.clock import SystemClock
from app.fleet import engine as worker_module
from app.fleet.engine import FleetWorker, _TryOthers
from app.store.database import Database
from app.store.database.backend import Fence
from app.store.members import COMMON, TASK, ClaimStore, MemberStore
from app.store.stores import Stores
from tests.support import postgres
from tests.support.memory import decision, heard

LEASE_SECONDS = 600.0
"""Longer than a test."""


@dataclass
class Member:
    """One member that runs turns, and what it is asked to take."""

    address: str
    taken: list[int] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)
    refusals: int = 0

    def __post_init__(self) -> None:
        clock, fence = SystemClock(), Fence(lambda: None)
        self.database = Database(self.address)
        self.database.open()
        self.stores = Stores.on(self.database, clock.now)
        self.members = MemberStore(self.database, clock.now, fence)
        self.claims = ClaimStore(self.database, clock.now, fence)
        self.worker = FleetWorker(
            self.address, "ada", self.claims, clock, lease_seconds=LEASE_SECONDS
        )
        self.jobs = App(connector=PsycopgConnector(conninfo=self.address, min_size=1))

    async def take(self, session: int) -> bool:
        """Note a session that waits."""
        self.taken.append(session)
        self.told.set()
        self.refusals -= 1
        return self.refusals < 0

    async def say(self, place: str) -> int:
        """Let a message lead to a turn; return its session."""
        accepted = await self.stores.decisions.accept(decision(heard("hello", place), "demo"))
        return accepted.turns[0].session

    async def list_jobs(self) -> Sequence[tuple[Any, ...]]:
        """List the wake-ups: session, queue and state."""
        found = await self.jobs.job_manager.list_jobs_async(task=TASK)
        return [(each.task_kwargs["session"], each.queue, each.status) for each in found]

    async def wait_until_empty(self) -> None:
        """Wait until every wake-up has been served."""
        async with asyncio.timeout(20):
            while await self.list_jobs():  # noqa: ASYNC110 - no one tells of what another one ends
                await asyncio.sleep(0.02)


@pytest.fixture
async def ada(tmp_path: Path) -> AsyncIterator[Member]:
    postgres.need_server()
    member = Member(postgres.server().provide(tmp_path))
    await member.members.join("ada", "all", 4)
    async with member.jobs.open_async():
        yield member
    member.database.close()


async def _serve(member: Member) -> None:
    """Serve until every wake-up has been served."""
    serving = asyncio.create_task(member.worker.run(member.take))
    try:
        await member.told.wait()
        await member.wait_until_empty()
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def test_an_announced_session_is_taken_and_its_job_ends(ada: Member) -> None:
    session = await ada.say("t1")
    await ada.claims.announce(session)

    async with asyncio.timeout(20):
        await _serve(ada)

    assert session in ada.taken


async def test_a_session_without_room_is_tried_again_on_the_queue_of_all(
    ada: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "FULL_SECONDS", 0.01)
    session = await ada.say("t1")
    await ada.claims.announce(session)
    ada.refusals = 2

    async with asyncio.timeout(20):
        await _serve(ada)

    assert ada.taken[:3] == [session, session, session]


def test_what_failed_for_another_reason_than_room_is_not_tried_again() -> None:
    job = Job(id=1, lock=None, queueing_lock=None, task_name=TASK, queue="ada")

    assert _TryOthers().get_retry_decision(exception=ValueError(), job=job) is None


async def test_a_sweep_announces_what_was_lost_and_drops_what_is_in_the_way(ada: Member) -> None:
    lost, announced, orphan = [await ada.say(place) for place in ("t1", "t2", "t3")]
    defer = ada.jobs.configure_task
    for queue, session in ((COMMON, announced), (COMMON, announced), ("gone", orphan)):
        await defer(TASK, queue=queue).defer_async(session=session)

    async with ada.worker._app.open_async():
        await ada.worker.sweep()
        await ada.worker.sweep()

    assert await ada.list_jobs() == [
        (announced, COMMON, "todo"),
        (lost, COMMON, "todo"),
        (orphan, COMMON, "todo"),
    ]


async def test_jobs_of_the_release_before_are_taken_over_and_no_turn_is_lost(ada: Member) -> None:
    done, waiting, fetched = [await ada.say(place) for place in ("t1", "t2", "t3")]
    await ada.claims.claim(*_first(ada, done), total=None, of_agent=None)
    # It wrote jobs that last as long as turns, with the session as both locks.
    made = (
        "insert into procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, status)"
        f" values ('bob', '{TASK}', ?, ?, jsonb_build_object('session', cast(? as int)), ?)"
    )
    for session, status in ((waiting, "todo"), (fetched, "doing"), (fetched, "todo")):
        postgres.run(ada.address, made, str(session), str(session), session, status)

    async with ada.worker._app.open_async():
        await ada.worker.sweep()

    assert await ada.list_jobs() == [(waiting, COMMON, "todo"), (fetched, COMMON, "todo")]


def _first(member: Member, session: int) -> tuple[Any, Any, Any]:
    return member.stores.turns.next_turn(session), {"demo": 1}, "announced"
