"""Tasks that are held while the server is away: where they wait, and where they read."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from app.retry import hold, hurried, is_hurried, watch
from app.store.database.holding import Holding, step_aside
from app.tasks import Tasks

pytestmark = pytest.mark.anyio

NAME: ContextVar[str] = ContextVar("name", default="")


@pytest.fixture
def outage() -> Holding:
    return Holding()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_task_goes_on_only_while_the_server_is_there(outage: Holding) -> None:
    async def work() -> None:
        for number in range(3):
            done.append(number)
            await asyncio.sleep(0)

    done: list[int] = []
    watch(outage)
    tasks, free = Tasks("held"), Tasks("free", is_held=False)
    outage.note(is_away=True)
    task = tasks.start(work(), name="held")
    await free.start(asyncio.sleep(0), name="free")
    await settle()
    assert done == []

    await asyncio.to_thread(outage.note, is_away=False)
    await task
    assert done == [0, 1, 2]


async def test_a_task_that_reads_first_waits_there_and_goes_on_first(outage: Holding) -> None:
    async def read() -> None:
        said.append("begins")
        outage.note(is_away=True)
        assert step_aside()
        said.append("ends")

    async def follow() -> None:
        await asyncio.sleep(0)
        said.append("follows")

    said: list[str] = []
    watch(outage)
    tasks = Tasks("held")
    both = [tasks.start(read(), name="reads"), tasks.start(follow(), name="follows")]
    await settle()
    assert said == ["begins"]

    outage.note(is_away=False)
    await asyncio.gather(*both)
    assert said == ["begins", "ends", "follows"]


async def test_a_task_keeps_its_context_and_its_result(outage: Holding) -> None:
    async def work() -> str:
        NAME.set("own")
        await asyncio.sleep(0)
        assert asyncio.current_task() is task
        return NAME.get()

    watch(outage)
    task = Tasks("held").start(work(), name="named")

    assert await task == "own"
    assert NAME.get() == ""


@pytest.mark.parametrize("reads", [False, True])
async def test_a_task_that_is_held_can_be_cancelled(outage: Holding, reads: bool) -> None:
    async def work() -> None:
        try:
            outage.note(is_away=True)
            await asyncio.sleep(0) if not reads else step_aside()
        except asyncio.CancelledError:
            said.append("cancelled")
            raise

    said: list[str] = []
    watch(outage)
    tasks = Tasks("held")
    tasks.start(work(), name="held")
    await settle()

    await tasks.close()

    assert said == ["cancelled"]


async def test_what_fails_fails_as_it_would(outage: Holding) -> None:
    async def fail() -> None:
        async with asyncio.timeout(0.0):
            await asyncio.Event().wait()

    watch(outage)
    with pytest.raises(TimeoutError):
        await hold(fail())


async def test_a_task_of_a_request_is_not_in_its_hurry(outage: Holding) -> None:
    async def work() -> bool:
        return is_hurried()

    watch(outage)
    with hurried():
        assert is_hurried()
        assert not await Tasks("held").start(work(), name="started")
    assert not is_hurried()


async def test_when_the_bridge_ends_nothing_is_held(outage: Holding) -> None:
    watch(outage)
    outage.note(is_away=True)
    task = Tasks("held").start(asyncio.sleep(0), name="held")
    await settle()

    outage.ignore()

    await task


async def test_what_is_not_held_does_not_step_aside() -> None:
    assert not step_aside()
