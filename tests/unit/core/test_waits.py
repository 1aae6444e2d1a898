"""A turn that waits for another agent lends what that one may need, and takes it back."""

from __future__ import annotations

import asyncio

import pytest

from app.core.repositories.folders import Hold
from app.core.turns.limits import Slots, WorkTimer
from app.core.turns.waits import TurnWaits
from app.tasks import Tasks
from tests.support.clock import ManualClock

pytestmark = pytest.mark.anyio


async def for_ever() -> None:
    """Wait for nothing that happens."""
    await asyncio.Event().wait()


async def test_a_folder_that_only_one_may_use_is_lent_meanwhile() -> None:
    clock, lock, tasks = ManualClock(), asyncio.Lock(), Tasks("a turn")
    mine, theirs = Hold(lock), Hold(lock)
    async with asyncio.timeout(5), Slots(1).one() as slot:
        waits = TurnWaits(clock, slot, WorkTimer(clock), tasks)
        waits.hold = mine
        await mine.take()

        async def work() -> None:
            await theirs.take()
            theirs.leave()

        assert await waits.wait(work(), 60) == "ended"
        assert lock.locked()
        mine.leave()
        assert not lock.locked()
        await tasks.close()


async def test_at_the_bound_a_turn_goes_on_without_the_folder_and_takes_it_when_it_is_free() -> (
    None
):
    clock, lock, tasks = ManualClock(), asyncio.Lock(), Tasks("a turn")
    mine, theirs = Hold(lock), Hold(lock)
    async with asyncio.timeout(5), Slots(1).one() as slot:
        waits = TurnWaits(clock, slot, WorkTimer(clock), tasks)
        waits.hold = mine
        await mine.take()

        async def work_for_ever() -> None:
            await theirs.take()
            await for_ever()

        waiting = asyncio.ensure_future(waits.wait(work_for_ever(), 60))
        await clock.asleep(1)
        await asyncio.sleep(0)
        await clock.advance(61)

        assert await waiting == "late"
        mine.leave()
        assert lock.locked(), "the other one still has it"
        theirs.leave()
        await tasks.close()


async def test_a_turn_that_is_over_waits_no_longer() -> None:
    clock, tasks = ManualClock(), Tasks("a turn")
    async with asyncio.timeout(5), Slots(1).one() as slot:
        waits = TurnWaits(clock, slot, WorkTimer(clock), tasks)
        waiting = asyncio.ensure_future(waits.wait(for_ever(), 60))
        await clock.asleep(1)

        waits.close()

        assert await waiting == "over"
