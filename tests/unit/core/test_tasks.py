"""Owned tasks end when their owner closes, also one that cannot write its end."""

from __future__ import annotations

import asyncio

import pytest

from app import tasks
from app.tasks import Tasks

pytestmark = pytest.mark.anyio


async def test_a_task_that_never_comes_to_its_end_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "CLOSE_SECONDS", 0.01)
    began, never = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            began.set()
            await never.wait()
        finally:
            await never.wait()  # as for a store that is away

    owned = Tasks("test")
    task = owned.start(work(), name="stubborn")
    await began.wait()

    async with asyncio.timeout(5):
        await owned.close()

    assert task.cancelled()


async def test_what_still_goes_on_is_not_begun_again() -> None:
    begun, end = [], asyncio.Event()

    async def work() -> None:
        begun.append(1)
        await end.wait()

    owned = Tasks("test")
    for _ in range(2):
        owned.start_once(work, name="look")
        await asyncio.sleep(0)
    assert len(begun) == 1

    end.set()
    await owned.settle(5)
    owned.start_once(work, name="look")
    await owned.settle(5)

    assert len(begun) == 2
