"""A turn that waits for people for long: its process goes, its ask stays, the answer goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.model.inbound import Heard
from app.model.ports import AgentListener
from app.model.types import SessionState, TurnState
from app.model.updates import AskOption, AskRequest, TextUpdate, ToolUpdate
from tests.support.clock import ManualClock
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

IDLE = 1800.0
WEEKEND = 3 * 86400.0
OPTIONS = (AskOption("allow", "Allow once", "allow_once"), AskOption("no", "Reject", "reject_once"))


def request(command: str) -> AskRequest:
    tool = ToolUpdate("call", f"Run {command}", "execute", input={"command": command})
    return AskRequest("call", f"Run {command}", OPTIONS, tool, arguments_hash=command)


def to_demo(text: str, place: str = "t1") -> Heard:
    return replace(heard(text, place), mentions=("demo",))


async def deploy(listener: AgentListener) -> None:
    await listener.on_update(TextUpdate("Looking around. "))
    answer = await listener.on_ask(request("make deploy"))
    await listener.on_update(TextUpdate(f"The answer was {answer}."))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    rules = Rules(idle_seconds=IDLE, max_turns=1)
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script = deploy
        yield desk


async def shown_asks(desk: Desk, count: int = 1) -> None:
    await desk.until(lambda: len(created(desk, "ask")) >= count)


def created(desk: Desk, kind: str) -> list[str]:
    return [p.content.text for p in desk.posts() if p.op == "create" and p.content.kind == kind]


async def parked(desk: Desk, clock: ManualClock) -> None:
    """Ask, and let nobody answer until the turn is parked."""
    await desk.hear(to_demo("deploy it"))
    await shown_asks(desk)
    await clock.asleep(2)
    await clock.advance(IDLE)
    await desk.reached(1, "parked")
    await desk.until(lambda: desk.launcher.told("close") == [""])


async def test_a_question_of_friday_is_answered_on_monday_and_the_work_goes_on(
    desk: Desk, clock: ManualClock
) -> None:
    await parked(desk, clock)
    assert desk.session().state == SessionState.WAITING
    await desk.until(lambda: desk.posts()[-1].content.state == "waiting")
    await clock.advance(WEEKEND)

    await desk.answer(1, "allow")
    await desk.reached(2, "done")

    assert desk.deliveries.settled == [("done", "answered")]
    assert (desk.turn(1).state, desk.turn(1).successor) == (TurnState.DONE, 2)
    assert desk.launcher.told("open") == ["", "conversation-1"]
    first, second = desk.launcher.told("prompt")
    assert "deploy it" in first
    assert "Ann answered: Allow once." in second
    assert "\nmake deploy\n" in second
    assert "> deploy it" in second
    assert created(desk, "ask") == ["Run make deploy"]
    await desk.until(lambda: any("was allow." in post.content.text for post in desk.posts()))


async def test_a_parked_turn_gives_its_slot_to_others(desk: Desk, clock: ManualClock) -> None:
    await parked(desk, clock)

    await desk.hear(to_demo("and here?", "t2"))
    await shown_asks(desk, 2)
    await desk.answer(2, "no")

    await desk.reached(2, "done")


async def test_an_answer_is_used_once(desk: Desk, clock: ManualClock) -> None:
    async def twice(listener: AgentListener) -> None:
        first = await listener.on_ask(request("make deploy"))
        await listener.on_update(TextUpdate(f"First {first}."))
        second = await listener.on_ask(request("make deploy"))
        await listener.on_update(TextUpdate(f"Second {second}."))

    desk.launcher.script = twice
    await parked(desk, clock)
    await desk.answer(1, "allow")
    await shown_asks(desk, 2)

    await desk.answer(2, "no")
    await desk.reached(2, "done")

    await desk.until(lambda: desk.posts()[-1].op == "finish")
    assert desk.posts()[-1].content.text == "First allow.Second no."


async def test_another_command_than_the_one_answered_is_asked_anew(
    desk: Desk, clock: ManualClock
) -> None:
    await parked(desk, clock)

    async def other(listener: AgentListener) -> None:
        await listener.on_ask(request("rm -rf /"))

    desk.launcher.script = other
    await desk.answer(1, "allow")
    await shown_asks(desk, 2)

    assert desk.turn(2).state == TurnState.PROMPTED
    assert created(desk, "ask") == ["Run make deploy", "Run rm -rf /"]


async def test_a_restart_leaves_a_parked_turn_and_its_ask_alone(
    tmp_path: Path, clock: ManualClock
) -> None:
    rules = Rules(idle_seconds=IDLE)
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script = deploy
        await parked(desk, clock)
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        desk.launcher.script = deploy
        assert desk.turn(1).state == TurnState.PARKED

        await desk.answer(1, "allow")
        await desk.reached(2, "done")

        assert desk.launcher.told("open") == ["conversation-1"]


async def test_stop_ends_a_parked_turn_and_its_ask(desk: Desk, clock: ManualClock) -> None:
    await parked(desk, clock)

    await desk.hear(to_demo("stop"))
    await desk.reached(1, "cancelled")
    await desk.answer(1, "allow")

    assert desk.deliveries.settled[-1] == ("refused", "this is no longer needed")
    assert desk.adapters["web:demo"].whispers[0][2] == (
        "This does not count: this is no longer needed."
    )
    await desk.until(lambda: any(post.content.state == "stopped" for post in desk.posts()))
    (stopped,) = (post for post in desk.posts() if post.content.state == "stopped")
    assert stopped.content.text == "Looking around. "


async def test_a_message_while_a_turn_is_parked_goes_on_and_takes_the_open_ask_with_it(
    desk: Desk, clock: ManualClock
) -> None:
    await parked(desk, clock)

    await desk.hear(to_demo("what about it?"))
    await desk.reached(2, "prompted")
    await desk.reached(1, "done")
    await desk.answer(1, "allow")
    await desk.reached(2, "done")

    assert created(desk, "ask") == ["Run make deploy"]
    assert "what about it?" in desk.launcher.told("prompt")[1]


async def test_new_ends_what_is_parked(desk: Desk, clock: ManualClock) -> None:
    await parked(desk, clock)

    await desk.hear(to_demo("new"))

    await desk.reached(1, "cancelled")


async def test_a_parked_turn_ends_with_its_last_ask(desk: Desk, clock: ManualClock) -> None:
    await parked(desk, clock)

    await clock.advance(Rules().ask_seconds)
    await desk.reached(1, "cancelled")
    await desk.answer(1, "allow")

    assert desk.deliveries.settled[-1] == ("refused", "the time to answer this has passed")
    await desk.until(lambda: any(p.content.kind == "notice" for p in desk.posts()))
    notices = [p.content.note for p in desk.posts() if p.content.kind == "notice"]
    assert notices == ["Nobody answered: `Run make deploy`"]
    closed = [p.content for p in desk.posts() if p.op == "finish" and p.content.kind == "ask"]
    assert [content.state for content in closed] == ["expired"]


async def test_an_agent_that_goes_on_with_something_is_not_parked(
    desk: Desk, clock: ManualClock
) -> None:
    also = asyncio.Event()

    async def ask_and_work(listener: AgentListener) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(deploy(listener))
            await also.wait()
            await listener.on_update(TextUpdate("Meanwhile."))
            also.clear()

    desk.launcher.script = ask_and_work
    await desk.hear(to_demo("deploy it"))
    await shown_asks(desk)
    await clock.asleep(2)
    await clock.advance(IDLE - 1)
    also.set()
    for _ in range(20):  # the script runs until it waits for its answer again
        await asyncio.sleep(0)
    assert not also.is_set()

    await clock.advance(IDLE - 1)
    assert desk.turn(1).state == TurnState.PROMPTED

    await clock.advance(1)
    await desk.reached(1, "parked")
