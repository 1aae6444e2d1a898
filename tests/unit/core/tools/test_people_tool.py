"""The tool ask_person: it waits a while, asks once, and the answer reaches the agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from app.core.tools import wording
from app.model.agents import Arguments
from app.model.types import SessionState
from tests.support.at_work import AtWork, at_work, helping, hold
from tests.support.clock import ManualClock
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

QUESTION: Arguments = {"question": "Which port?", "options": ["8000", "9000"]}
TEAM = Rules(agents=("demo", "codex"), names={"codex": "Codex"}, max_turns=1)


class PunctualClock(ManualClock):
    """A clock that stands still, on which no wait takes no time."""

    @override
    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            await super().sleep(seconds)


@pytest.fixture
def clock() -> ManualClock:
    return PunctualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Desk]:
    async with running_desk(tmp_path, clock=clock, rules=TEAM) as running:
        yield running


def asked(desk: Desk) -> list[str]:
    return [p.content.text for p in desk.posts() if p.op == "create" and p.content.kind == "ask"]


async def shown(desk: Desk, count: int = 1) -> None:
    await desk.until(lambda: len(asked(desk)) >= count)


async def leave_open(desk: Desk, demo: AtWork, **more: Any) -> dict[str, Any]:
    """Ask without waiting."""
    before = len(asked(desk))
    result = await demo.call("ask_person", **QUESTION, **more, wait_seconds=0)
    await shown(desk, before)
    return result


async def test_an_answer_in_time_is_the_result_and_others_work_meanwhile(desk: Desk) -> None:
    async with at_work(desk) as demo:
        waiting = asyncio.ensure_future(demo.call("ask_person", **QUESTION))
        await shown(desk)
        assert desk.session().state == SessionState.WAITING
        async with at_work(desk, "work", "t2", "codex"):
            pass  # there is one slot, and the one who waits has lent it
        await desk.answer(1, "option-2")

        assert await waiting == {"state": "answered", "answer": "9000", "by": "Ann"}
    assert asked(desk) == ["Which port?"]


async def test_words_answer_a_question_without_options(desk: Desk) -> None:
    async with at_work(desk) as demo:
        waiting = asyncio.ensure_future(demo.call("ask_person", question="Why?"))
        await shown(desk)
        await desk.hear(replace(heard("Because it is slow"), mentions=("demo",)))

        assert (await waiting)["answer"] == "Because it is slow"


async def test_the_same_question_again_finds_the_open_one_and_then_its_answer(desk: Desk) -> None:
    async with at_work(desk) as demo:
        first = await leave_open(desk, demo)
        again = await demo.call("ask_person", **QUESTION, wait_seconds=0)
        both = [asyncio.ensure_future(demo.call("ask_person", **QUESTION)) for _ in range(2)]
        await desk.answer(1, "option-1")
        got = [(await each)["answer"] for each in both]
    await desk.until(lambda: desk.turn(1).state == "done")

    assert first == again == {"state": "open", "note": wording.STILL_OPEN}
    assert got == ["8000", "8000"]
    assert asked(desk) == ["Which port?"]
    assert desk.stores.turns.turn(2) is None


async def test_an_answer_after_the_end_of_the_turn_begins_the_next_one(desk: Desk) -> None:
    async with at_work(desk) as demo:
        await leave_open(desk, demo)
    assert desk.session().state == SessionState.WAITING

    await desk.answer(1, "option-2")
    await desk.reached(2, "done")

    told = desk.launcher.told("prompt")[-1]
    assert "Ann on web, web:t1:demo, answer to your question: Which port?" in told
    assert told.endswith("\n9000")
    (message,) = desk.stores.turns.messages(2)
    assert (message.speaker.id, message.speaker.name) == ("ann", "Ann")
    assert desk.session().state != SessionState.WAITING


async def test_an_answer_that_the_agent_did_not_read_begins_a_turn_at_the_end(desk: Desk) -> None:
    async with at_work(desk) as demo:
        await leave_open(desk, demo)
        await desk.answer(1, "option-2")
        assert desk.stores.turns.turn(2) is None

    await desk.reached(2, "done")
    assert desk.launcher.told("prompt")[-1].endswith("\n9000")
    await desk.engine.ended(desk.session().id)
    assert desk.stores.turns.turn(3) is None


async def test_a_stop_closes_the_question(desk: Desk) -> None:
    async with at_work(desk) as demo:
        await leave_open(desk, demo)
        await desk.manager.stop(demo.session)
        await desk.reached(1, "cancelled")

        assert (await demo.call("ask_person", **QUESTION))["error"] == wording.NO_TURN
    ask = desk.stores.asks.ask(1)
    assert ask is not None
    assert ask.state == "cancelled"


async def test_three_questions_are_open_at_most(desk: Desk) -> None:
    async with at_work(desk) as demo:
        made = [
            await demo.call("ask_person", question=f"Number {number}?", wait_seconds=0)
            for number in range(4)
        ]
        known = await demo.call("ask_person", question="Number 1?", wait_seconds=0)

    assert [each.get("state") for each in made] == ["open", "open", "open", None]
    assert "3 of your questions are open" in made[3]["error"]
    assert known["state"] == "open"


async def test_a_question_for_another_agent_is_shown_where_people_are_and_closes_with_its_turn(
    desk: Desk,
) -> None:
    async with at_work(desk) as demo:
        desk.engine._slots._free.release()
        async with helping(desk, demo) as codex:
            waiting = asyncio.ensure_future(codex.call("ask_person", **QUESTION))
            await shown(desk)
            await desk.answer(1, "option-1")
            assert (await waiting)["answer"] == "8000"
            left = await codex.call("ask_person", question="Why?", wait_seconds=0)
            assert left["state"] == "open"

    assert "Codex" in asked(desk)[0]
    ask = desk.stores.asks.ask(2)
    assert ask is not None
    assert ask.state == "cancelled"


async def test_a_call_that_is_cut_off_leaves_the_question_to_the_next(desk: Desk) -> None:
    async with at_work(desk) as demo:
        cut = asyncio.ensure_future(demo.call("ask_person", **QUESTION))
        await shown(desk)
        cut.cancel()
        await asyncio.wait([cut])
        await desk.answer(1, "option-1")

        assert (await demo.call("ask_person", **QUESTION))["answer"] == "8000"


async def test_a_parked_turn_goes_on_with_the_answer(tmp_path: Path, clock: ManualClock) -> None:
    rules = Rules(idle_seconds=30)
    async with running_desk(tmp_path, clock=clock, rules=rules) as desk:
        async with at_work(desk) as demo:
            waiting = asyncio.ensure_future(demo.call("ask_person", **QUESTION))
            await shown(desk)
            await clock.asleep(4)
            await clock.advance(30)
            await desk.reached(1, "parked")
            waiting.cancel()
            await asyncio.wait([waiting])

        await desk.answer(1, "option-1")
        await desk.reached(2, "done")

    told = desk.launcher.told("prompt")[-1]
    assert "Ann answered: 8000. Your request follows as data:" in told
    assert told.endswith("> go")


async def test_after_a_restart_the_question_is_open_and_its_answer_is_in_the_prompt(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running_desk(tmp_path, clock=clock, rules=TEAM) as desk, at_work(desk) as demo:
        waiting = asyncio.ensure_future(demo.call("ask_person", **QUESTION))
        await shown(desk)
        await desk.engine.drain(grace=0)
        waiting.cancel()
    async with running_desk(tmp_path, clock=clock, rules=TEAM) as desk:
        hold(desk, "demo")
        await desk.reached(1, "prompted")
        ask = desk.stores.asks.ask(1)
        assert ask is not None
        assert ask.state == "open"
        again = asyncio.ensure_future(desk.call("demo", "ask_person", **QUESTION))
        await clock.asleep(1)
        await desk.answer(1, "option-1")
        assert (await again)["answer"] == "8000"
        assert asked(desk) == []
