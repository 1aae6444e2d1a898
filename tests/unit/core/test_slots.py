"""Turn slots: fair, and free while a turn waits for people."""

from __future__ import annotations

import asyncio

import pytest

from app.core.turns.limits import Slots

pytestmark = pytest.mark.anyio


async def test_no_more_turns_run_than_there_are_slots() -> None:
    slots = Slots(2)
    together = asyncio.Barrier(2)
    running = 0
    most = 0

    async def turn() -> None:
        nonlocal running, most
        async with slots.one():
            running += 1
            most = max(most, running)
            await together.wait()
            running -= 1

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(turn())

    assert most == 2


async def test_a_turn_that_waits_for_a_person_holds_no_slot() -> None:
    slots = Slots(1)
    answered = asyncio.Event()
    order: list[str] = []

    async def asking() -> None:
        async with slots.one() as slot:
            async with slot.lend():
                order.append("asks")
                await answered.wait()
            order.append("goes on")

    async def other() -> None:
        async with slots.one():
            order.append("other")
            answered.set()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(asking())
        group.create_task(other())

    assert order == ["asks", "other", "goes on"]


async def test_two_asks_of_one_turn_give_back_one_slot() -> None:
    slots = Slots(1)
    async with asyncio.timeout(5):
        async with slots.one() as slot, slot.lend(), slot.lend(), slots.one():
            pass
        async with slots.one():
            pass


async def test_a_turn_that_is_cancelled_while_it_waits_leaves_its_slot_to_others() -> None:
    slots = Slots(1)
    asking = asyncio.Event()

    async def turn() -> None:
        async with slots.one() as slot, slot.lend():
            asking.set()
            await asyncio.Event().wait()

    async with asyncio.timeout(5):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(turn())
            await asking.wait()
            task.cancel()
        async with slots.one():
            pass
