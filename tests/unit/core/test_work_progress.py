"""The state of work that pages show: read in the background, once at a time, and not too often."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.repositories.following import AGAIN_SECONDS, WorkProgress
from app.errors import RepositoryError
from app.model.workspaces import Checkout, Judged, Repository

pytestmark = pytest.mark.anyio

RECORD = Checkout(7, 1, Repository("acme/app", "https://git/acme/app"), "branch", branch="fix")


class World:
    """The ports of the progress, with a transcript."""

    def __init__(self, record: Checkout | None = RECORD) -> None:
        self.record = record
        self.now = 0.0
        self.told: list[int] = []
        self.measured = 0
        self.asked: list[str] = []
        self.kept: list[Judged] = []
        self.problem: RepositoryError | None = None
        self.news = asyncio.Semaphore(0)
        self.began = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        session = SimpleNamespace(id=7, key=SimpleNamespace(agent="claude"))
        parts: Any = SimpleNamespace(
            session=lambda _number: session,
            latest=lambda _session: self.record,
            judged=self.keep,
            measure=self.measure,
            notify=self.tell,
            monotonic=lambda: self.now,
        )
        forge: Any = SimpleNamespace(judged=self.judge)
        base: Any = SimpleNamespace(
            clock=parts, stores=SimpleNamespace(sessions=parts, checkouts=parts)
        )
        self.progress = WorkProgress(base, parts, parts, forge)

    def tell(self, session: int) -> None:
        self.told.append(session)
        self.news.release()

    async def measure(self, _session: object) -> None:
        self.measured += 1
        self.began.set()
        await self.may_go_on.wait()
        if self.problem is not None:
            raise self.problem

    async def judge(self, _repository: object, _agent: str, branch: str) -> Judged:
        self.asked.append(branch)
        return Judged("passed", "approved")

    async def keep(self, _session: int, _number: int, found: Judged) -> None:
        self.kept.append(found)

    async def told_times(self, times: int) -> None:
        async with asyncio.timeout(5):
            for _ in range(times):
                await self.news.acquire()


async def test_what_changed_and_the_state_of_a_pull_request_are_kept_and_told() -> None:
    world = World(replace(RECORD, link="https://git/acme/app/pull/1"))

    world.progress.look(7)
    await world.told_times(1)

    assert (world.measured, world.asked) == (1, ["fix"])
    assert world.kept == [Judged("passed", "approved")]
    await world.progress.close()


@pytest.mark.parametrize(
    "record", [RECORD, replace(RECORD, link="https://git/acme/app/pull/1", outcome="merged")]
)
async def test_only_an_open_pull_request_is_asked_about(record: Checkout) -> None:
    world = World(record)

    world.progress.look(7)
    await world.told_times(1)

    assert (world.measured, world.asked) == (1, [])
    await world.progress.close()


async def test_a_session_without_a_clone_is_not_read() -> None:
    world = World(None)

    world.progress.look(7)
    await world.progress.close()

    assert (world.measured, world.told) == (0, [])


async def test_what_happens_during_a_reading_is_read_once_more_and_not_more_often() -> None:
    world = World()
    world.may_go_on.clear()
    world.progress.look(7)
    async with asyncio.timeout(5):
        await world.began.wait()

    for _ in range(3):
        world.progress.look(7)
    world.may_go_on.set()
    await world.told_times(2)

    assert world.measured == 2
    await world.progress.close()


async def test_a_page_that_is_opened_has_only_an_old_state_read_again() -> None:
    world = World()
    world.progress.look_if_old(7)
    await world.told_times(1)
    await asyncio.sleep(0)

    world.now = AGAIN_SECONDS - 1
    world.progress.look_if_old(7)
    world.now = AGAIN_SECONDS
    world.progress.look_if_old(7)
    await world.told_times(1)

    assert world.measured == 2
    await world.progress.close()


async def test_a_host_that_does_not_answer_is_no_end_of_reading() -> None:
    world = World()
    world.problem = RepositoryError("no answer")
    world.progress.look(7)
    await world.told_times(1)
    await asyncio.sleep(0)

    world.problem = None
    world.progress.look(7)
    await world.told_times(1)

    assert world.measured == 2
    await world.progress.close()
