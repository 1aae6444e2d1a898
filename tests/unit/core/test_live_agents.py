"""Live agents: as many as allowed, none kept for nobody."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.turns.prompt import SystemPrompt
from app.model.inbound import Heard
from app.model.types import TurnState
from tests.support.clock import ManualClock
from tests.support.desk import Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio


def to_demo(text: str, place: str = "t1") -> Heard:
    return replace(heard(text, place), mentions=("demo",))


async def test_a_stop_while_room_is_made_leaves_nobody_waiting_for_room(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=Rules(max_processes=1)) as desk:
        await desk.hear(to_demo("idles", "t1"))
        await desk.reached(1, "done")
        ended = asyncio.Event()
        desk.launcher.closing = ended.wait
        await desk.hear(to_demo("makes room for itself", "t2"))
        await desk.until(lambda: desk.launcher.told("close", "t1") == [""])
        await desk.hear(to_demo("waits for room", "t3"))
        await desk.reached(3, "starting")

        await desk.hear(to_demo("stop", "t2"))
        ended.set()
        await desk.reached(3, "done")

        assert desk.turn(2).state == TurnState.CANCELLED
        assert desk.launcher.told("prompt", "t2") == []


async def test_whoever_idles_longest_makes_room(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=Rules(max_processes=2)) as desk:
        for number, place in enumerate(("t1", "t2", "t3"), start=1):
            await desk.hear(to_demo("hello", place))
            await desk.reached(number, "done")

        assert [line.session.external for line in desk.launcher.lines if line.what == "close"] == [
            "t1"
        ]


async def test_an_idle_agent_is_parked_after_its_minutes_and_comes_back(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running_desk(tmp_path, clock=clock, rules=Rules(idle_seconds=600)) as desk:
        await desk.hear(to_demo("hello"))
        await desk.reached(1, "done")
        await clock.asleep()
        await clock.advance(599)
        assert desk.launcher.told("close") == []

        await clock.advance(1)
        await desk.until(lambda: desk.launcher.told("close") == [""])
        await desk.hear(to_demo("and now?"))
        await desk.reached(2, "done")

        assert desk.launcher.told("open") == ["", "conversation-1"]


async def test_an_agent_that_is_used_again_begins_to_idle_anew(tmp_path: Path) -> None:
    clock = ManualClock()
    async with running_desk(tmp_path, clock=clock, rules=Rules(idle_seconds=600)) as desk:
        await desk.hear(to_demo("hello"))
        await desk.reached(1, "done")
        await clock.asleep()
        await clock.advance(599)
        await desk.hear(to_demo("still there?"))
        await desk.reached(2, "done")
        await clock.asleep()

        await clock.advance(599)

        assert desk.launcher.told("open") == [""]
        assert desk.launcher.told("close") == []


async def test_a_conversation_that_begins_afresh_never_gets_the_process_of_the_old_one(
    tmp_path: Path,
) -> None:
    async with running_desk(tmp_path) as desk:
        await desk.hear(to_demo("hello"))
        await desk.reached(1, "done")
        fresh = replace(desk.session(), acp_session_id=None, generation=2)

        live = await desk.live.take(fresh, None, SystemPrompt())

        assert (live.how, live.generation) == ("new", 2)
        assert desk.launcher.told("close") == [""]
