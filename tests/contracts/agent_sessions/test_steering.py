"""Words that go into a running turn: taken once, handed back, and looked for after a kill."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from app.errors import AgentError
from app.model.steering import mark
from tests.agents.rig import Listener, Rig, eventually, told

OVER_A_RELAY = True
WAITS = "run sh -c 'touch begun; until test -e go; do sleep 0.05; done'"


@pytest.mark.kits("steered")
async def test_words_are_taken_into_a_running_turn_and_are_in_the_conversation_once(
    rig: Rig,
) -> None:
    opened = await rig.open()
    turn = asyncio.create_task(told(opened.session, WAITS, "allow_once"))
    await eventually((rig.workspace / "begun").exists)

    taken = await opened.session.steer(f"say the steered words\n{mark(7)}")
    (rig.workspace / "go").touch()
    heard = await turn
    await opened.session.close()
    again = await rig.open(opened.session, replay=True)
    recalled = await told(again.session, "recall")

    assert taken
    assert heard.end.stop_reason == "end_turn"
    assert again.marks == frozenset({7})
    assert recalled.text.count("the steered words") == 1


@pytest.mark.kits("steered")
async def test_words_are_handed_back_where_no_turn_runs(rig: Rig) -> None:
    opened = await rig.open()
    before = await opened.session.steer("say too early")
    await told(opened.session, "say hi")

    after = await opened.session.steer("say too late")
    recalled = await told(opened.session, "recall")

    assert (before, after) == (False, False)
    assert "too early" not in recalled.text
    assert "too late" not in recalled.text


@pytest.mark.kits("steered")
async def test_words_that_a_kill_took_are_missing_in_the_replay(rig: Rig) -> None:
    opened = await rig.open()
    turn = asyncio.create_task(told(opened.session, WAITS, "allow_once"))
    await eventually((rig.workspace / "begun").exists)
    assert await opened.session.steer(f"say the lost words\n{mark(8)}")

    rig.kill()
    with suppress(AgentError):
        await turn
    again = await rig.open(opened.session, replay=True)

    assert (again.how, again.marks) == ("loaded", frozenset())


async def test_an_agent_says_whether_it_takes_words(rig: Rig) -> None:
    opened = await rig.open()

    assert opened.session.steerable == rig.kit.steered


@pytest.mark.kits("is_deaf_to_steering")
async def test_an_agent_that_takes_no_words_hands_them_back(rig: Rig) -> None:
    opened = await rig.open()
    listener = Listener()
    turn = asyncio.create_task(opened.session.prompt("slow 600", listener))
    await listener.wait_for_text()

    assert not await opened.session.steer("say hello")

    await opened.session.cancel()
    assert (await turn).stop_reason == "cancelled"


@pytest.mark.kits("pulls")
async def test_an_agent_that_asks_for_words_gets_them_once_and_in_order(rig: Rig) -> None:
    opened = await rig.open()
    await told(opened.session, "run true", "allow_once")
    turn = asyncio.create_task(told(opened.session, WAITS, "allow_once"))
    await eventually((rig.workspace / "begun").exists)

    steering = asyncio.create_task(opened.session.steer(f"[Bob]\nsay the pulled words\n{mark(7)}"))
    await asyncio.sleep(0)
    (rig.workspace / "go").touch()
    heard = await turn
    taken = await steering
    recalled = await told(opened.session, "recall")

    assert opened.session.steerable
    assert taken
    assert heard.end.stop_reason == "end_turn"
    assert recalled.text.count("the pulled words") == 1


@pytest.mark.kits("pulls")
async def test_words_that_no_one_asked_for_are_handed_back(rig: Rig) -> None:
    opened = await rig.open()
    await told(opened.session, "run true", "allow_once")
    listener = Listener()
    turn = asyncio.create_task(opened.session.prompt("slow 600", listener))
    await listener.wait_for_text()

    steering = asyncio.create_task(opened.session.steer("say too late"))
    await asyncio.sleep(0)
    await opened.session.cancel()
    await turn

    assert not await steering
