"""What every clock promises, the real one and the one that tests drive."""

from __future__ import annotations

import asyncio

import pytest

from app.clock import Clock, SystemClock
from app.errors import StoreUnavailable
from app.retry import persist
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[SystemClock, ManualClock])
async def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


async def test_time_never_goes_back(clock: Clock) -> None:
    first = clock.monotonic()

    assert clock.monotonic() >= first


async def test_now_is_seconds_since_1970(clock: Clock) -> None:
    assert clock.now() > 1_700_000_000


async def test_whoever_sleeps_can_be_cancelled(clock: Clock) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await clock.sleep(3600)


async def test_a_write_is_tried_again_until_the_store_can() -> None:
    answers: list[Exception | str] = [StoreUnavailable("locked"), StoreUnavailable("full"), "ok"]

    async def write(word: str) -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return f"{word} {answer}"

    hurried = ManualClock()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        writing = group.create_task(persist(hurried, write, "all"))
        await hurried.asleep()
        await hurried.advance(5)

    assert writing.result() == "all ok"
