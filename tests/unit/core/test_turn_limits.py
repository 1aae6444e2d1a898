"""How long a turn may take: the agent's time counts, people's time does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.model.ports import AgentListener
from app.model.types import TurnState
from app.model.updates import AskOption, AskRequest, TextUpdate
from tests.support.clock import ManualClock
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

LIMIT = 3600.0
RULES = Rules(turn_seconds=LIMIT, idle_seconds=100 * LIMIT)
MAY_I = AskRequest("call", "May I?", (AskOption("yes", "Yes", "allow_once"),))
HELLO = replace(heard("hello"), mentions=("demo",))
OVER = "Stopped after 60 minutes, the limit for one turn."


async def ask_and_say(listener: AgentListener) -> None:
    answer = await listener.on_ask(MAY_I)
    await listener.on_update(TextUpdate(f"the answer was {answer}"))


async def ask_and_work_for_ever(listener: AgentListener) -> None:
    await listener.on_ask(MAY_I)
    await asyncio.Event().wait()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, clock=clock, rules=RULES) as desk:
        yield desk


async def asked(desk: Desk) -> None:
    """Wait until the place shows an ask."""
    await desk.until(lambda: any(post.content.kind == "ask" for post in desk.posts()))


async def test_a_turn_over_its_limit_ends_with_words_that_name_the_setting(
    desk: Desk, clock: ManualClock
) -> None:
    desk.launcher.script = lambda _listener: asyncio.Event().wait()
    await desk.hear(HELLO)
    await desk.until(lambda: bool(desk.launcher.told("prompt")))
    await clock.asleep()
    await clock.advance(LIMIT - 1)
    assert desk.turn(1).state == TurnState.PROMPTED

    await clock.advance(1)
    await desk.reached(1, "failed")
    await desk.until(lambda: desk.posts()[-1].op == "finish")

    assert desk.turn(1).error == OVER
    assert (desk.posts()[-1].content.state, desk.posts()[-1].content.note) == ("failed", OVER)


async def test_an_open_ask_may_wait_for_longer_than_a_turn_may_take(
    desk: Desk, clock: ManualClock
) -> None:
    desk.launcher.script = ask_and_say
    await desk.hear(HELLO)
    await asked(desk)
    await clock.asleep()

    await clock.advance(3 * LIMIT)
    await desk.answer(1, "yes")
    await desk.reached(1, "done")

    assert "cancel" not in [line.what for line in desk.launcher.lines]
    assert desk.deliveries.settled == [("done", "answered")]


async def test_the_time_of_the_agent_counts_before_and_after_an_answer(
    desk: Desk, clock: ManualClock
) -> None:
    desk.launcher.script = ask_and_work_for_ever
    await desk.hear(HELLO)
    await asked(desk)
    await clock.asleep()
    await clock.advance(LIMIT / 2)
    await desk.answer(1, "yes")
    await clock.asleep()

    await clock.advance(LIMIT - 1)
    assert desk.turn(1).state == TurnState.PROMPTED
    await clock.advance(1)
    await desk.reached(1, "failed")

    assert desk.turn(1).error == OVER
