"""A turn that waits for another agent: it holds no slot, and it does not wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.model.delegation import DelegationLimits
from app.model.keys import PlaceKey
from app.model.ports import AgentListener
from app.model.types import TurnState
from tests.support.clock import ManualClock
from tests.support.colleagues import Asking, Working, asked, die, has_asked, message
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

TEAM = Rules(agents=("demo", "codex", "third"), names={"demo": "Demo", "codex": "Codex"})
Open = Callable[[Rules], AbstractAsyncContextManager[Desk]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def running(tmp_path: Path, clock: ManualClock) -> Open:
    return lambda rules: running_desk(tmp_path, clock=clock, rules=rules)


async def test_a_call_that_waits_returns_the_answer_even_with_one_slot(running: Open) -> None:
    async with running(replace(TEAM, max_turns=1)) as desk:
        demo, codex = Asking(desk, calls=(message(),)), Working(desk)
        codex.free.set()

        (turn,) = await desk.ask("demo")
        await desk.reached(turn, "done")

        (got,) = demo.got
        assert (got["answer"], got["state"], got["agent"]) == ("looks good", "done", "codex")
        assert asked(desk).told


async def test_the_bound_of_a_call_ends_the_wait_and_not_the_work(
    running: Open, clock: ManualClock
) -> None:
    async with running(replace(TEAM, max_turns=1)) as desk:
        demo, codex = Asking(desk, calls=(message(timeout=60),)), Working(desk)
        (turn,) = await desk.ask("demo")
        await codex.begun()

        await clock.advance(61)
        await desk.until(lambda: bool(demo.got))

        assert demo.got[0]["state"] == "working"
        assert "answer" not in demo.got[0]
        await desk.reached(turn, "done")
        codex.free.set()
        await desk.reached(asked(desk).turn, "done")


async def test_with_one_process_the_call_ends_at_its_bound_and_the_other_works_afterwards(
    running: Open, clock: ManualClock
) -> None:
    async with running(replace(TEAM, max_processes=1)) as desk:
        demo, codex = Asking(desk, calls=(message(timeout=60),)), Working(desk)
        codex.free.set()
        (turn,) = await desk.ask("demo")
        await desk.until(
            lambda: has_asked(desk) and desk.turn(asked(desk).turn).state == "starting"
        )

        await clock.advance(61)
        await desk.reached(turn, "done")

        assert demo.got[0]["state"] == "working"
        await desk.reached(asked(desk).turn, "done")


async def test_the_time_of_a_turn_is_paused_while_it_waits_for_another_agent(
    running: Open, clock: ManualClock
) -> None:
    async with running(replace(TEAM, turn_seconds=1000)) as desk:
        demo, codex = Asking(desk, calls=(message(timeout=3000),)), Working(desk)
        (turn,) = await desk.ask("demo")
        await codex.begun()
        await clock.asleep(4)  # both time limits, the bound of the call and that of the tree

        await clock.advance(1001)

        await desk.reached(turn, "done")
        assert demo.got[0]["state"] == "failed"


async def test_stop_on_the_caller_stops_all_that_it_asked_for(running: Open) -> None:
    async with running(TEAM) as desk:
        Asking(desk, calls=(message(),))
        codex = Working(desk)
        (turn,) = await desk.ask("demo")
        await codex.begun()

        await desk.manager.stop(desk.session().id)

        await desk.reached(turn, "cancelled")
        await desk.reached(asked(desk).turn, "cancelled")


async def test_stop_reaches_what_goes_on_after_the_turn_that_asked(running: Open) -> None:
    async with running(TEAM) as desk:
        Asking(desk, calls=(message(mode="async"),))
        codex = Working(desk)
        (turn,) = await desk.ask("demo")
        await desk.reached(turn, "done")
        await codex.begun()

        await desk.hear(replace(heard("stop"), mentions=("demo",)))

        await desk.reached(asked(desk).turn, "cancelled")


async def test_stop_on_a_child_stops_only_the_child(running: Open) -> None:
    async with running(TEAM) as desk:
        demo, codex = Asking(desk, calls=(message(),)), Working(desk)
        (turn,) = await desk.ask("demo")
        await codex.begun()

        await desk.manager.stop(asked(desk).session)

        await desk.reached(turn, "done")
        assert demo.got[0]["state"] == "stopped"


async def test_a_caller_that_dies_stops_what_it_waits_for_and_nothing_else(running: Open) -> None:
    async with running(TEAM) as desk:
        codex, third = Working(desk), Working(desk, "third")
        waits = asyncio.Event()

        async def call(to: str, **more: str) -> Mapping[str, Any]:
            return await desk.call("demo", "agents_message", to=to, text="look", **more)

        async def ask_and_die(listener: AgentListener) -> None:
            await call("third", mode="async")
            waiting = asyncio.ensure_future(call("codex"))
            await waits.wait()
            assert not waiting.done()
            await die(listener)

        desk.launcher.scripts["demo"] = ask_and_die
        (turn,) = await desk.ask("demo")
        await codex.begun()
        await third.begun()

        waits.set()

        await desk.reached(turn, "failed")
        sync, background = asked(desk), desk.delegations.begun_in(desk.session().place)[0]
        await desk.reached(sync.turn, "cancelled")
        assert desk.turn(background.turn).state is TurnState.PROMPTED
        third.free.set()
        await desk.reached(background.turn, "done")


async def test_a_child_that_never_ends_is_ended_by_the_time_limit_of_its_tree(
    running: Open, clock: ManualClock
) -> None:
    limits = DelegationLimits(seconds=7200)
    async with running(replace(TEAM, delegation=limits, turn_seconds=1e6)) as desk:
        Asking(desk, calls=(message(mode="async"),))
        codex = Working(desk)
        (turn,) = await desk.ask("demo")
        await desk.reached(turn, "done")
        await codex.begun()

        await clock.advance(7201)

        await desk.reached(asked(desk).turn, "cancelled")
        told = [post.content.note for post in desk.posts() if post.content.kind == "notice"]
        assert len(told) == 1
        assert "for as long as they may" in told[0]


async def test_an_agent_reads_and_stops_only_what_it_asked_for(running: Open) -> None:
    async with running(replace(TEAM, delegation=DelegationLimits(depth=2))) as desk:
        demo = Asking(desk, calls=(("agents_spawn", {"agent": "codex", "task": "build it"}),))
        codex, third = Working(desk), Working(desk, "third")
        (turn,) = await desk.ask("demo")
        await desk.reached(turn, "done")
        await codex.begun()
        begun = demo.got[0]["id"]

        demo.calls = tuple((tool, {"id": begun}) for tool in ("agents_result", "agents_stop"))
        await desk.ask("demo", place="t2")
        await desk.until(lambda: len(demo.got) == 3)
        assert ["asked for nothing" in each["error"] for each in demo.got[1:]] == [True, True]

        demo.calls = (("agents_status", {}), ("agents_stop", {"id": begun}))
        await desk.ask("demo")
        await desk.until(lambda: len(demo.got) == 5)
        assert demo.got[3]["asked"][0]["state"] == "working"
        await desk.reached(asked(desk).turn, "cancelled")
        third.free.set()


async def test_an_answer_that_comes_after_the_turn_is_told_in_the_next_one(running: Open) -> None:
    async with running(TEAM) as desk:
        demo, codex = Asking(desk, calls=(message(mode="async"),)), Working(desk)
        (turn,) = await desk.ask("demo")
        await desk.reached(turn, "done")
        codex.free.set()
        await desk.reached(asked(desk).turn, "done")

        demo.calls = ()
        for _ in range(2):
            (turn,) = await desk.ask("demo")
            await desk.reached(turn, "done")

        first, second = desk.launcher.told("prompt", "t1")[1:]
        assert "You asked Codex before (id 1): “look at it”. It is done" in first
        assert '<data from="the answer of Codex, id 1">\nlooks good\n</data>' in first
        assert "Codex" not in second


async def test_an_agent_is_told_for_whom_it_works(running: Open) -> None:
    async with running(TEAM) as desk:
        Asking(desk, calls=(message(),))
        Working(desk).free.set()
        (turn,) = await desk.ask("demo")
        await desk.reached(turn, "done")

        (prompt,) = desk.launcher.told("prompt", str(asked(desk).id))
        assert "The agent Demo, which works for Ann, asked you to do this." in prompt
        assert prompt.endswith("\nlook at it")


async def test_a_bridge_that_restarts_tells_the_caller_what_became_of_its_call(
    tmp_path: Path,
) -> None:
    async with running_desk(tmp_path, rules=TEAM) as desk:
        Asking(desk, calls=(message(),))
        codex = Working(desk)
        (turn,) = await desk.ask("demo")
        await codex.begun()

    async with running_desk(tmp_path, rules=TEAM) as desk:
        demo, codex = Asking(desk, calls=(message(),)), Working(desk)
        await desk.until(lambda: any("It still works on that" in each for each in prompts(desk)))
        codex.free.set()

        await desk.reached(turn, "done")
        assert demo.got[0]["answer"] == "looks good"
        assert len(desk.delegations.begun_in(PlaceKey("web", "t1"))) == 1


def prompts(desk: Desk) -> list[str]:
    """List what the first agent was told in the place of people."""
    return desk.launcher.told("prompt", "t1")
