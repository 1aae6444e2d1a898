"""Sessions and commands: what people say counts, whatever the agents are doing just then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert

from app.model.conversations import Wanted
from app.model.inbound import Effect, Heard
from app.model.keys import PlaceKey
from app.model.ports import AgentListener
from app.model.types import TurnState
from app.model.updates import TextUpdate, ToolUpdate
from app.store.tables import surface
from tests.support.clock import ManualClock
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import decision, heard

pytestmark = pytest.mark.anyio


def to_demo(text: str, place: str = "t1") -> Heard:
    """Say something to the agent of most tests."""
    return replace(heard(text, place), mentions=("demo",))


async def listed(desk: Desk, limit: int) -> list[int]:
    """Read the list of sessions page by page, as the page and the API do."""
    found: list[int] = []
    before: tuple[float, int] | None = None
    while page := await desk.stores.sessions.recent(before=before, limit=limit):
        found += [session.id for session in page]
        before = (page[-1].updated_at, page[-1].id)
    return found


async def test_new_and_mode_count_for_a_turn_that_waits_for_its_slot(tmp_path: Path) -> None:
    async with running_desk(tmp_path, rules=Rules(max_turns=1)) as desk:
        await desk.hear(to_demo("first"))
        await desk.reached(1, "done")
        slot = asyncio.Event()
        desk.launcher.script = lambda _listener: slot.wait()
        await desk.hear(to_demo("blocks the only slot", "t2"))
        await desk.reached(2, "prompted")
        await desk.hear(to_demo("second"))

        await desk.hear(to_demo("mode plan"))
        await desk.hear(to_demo("new"))
        slot.set()
        await desk.reached(3, "done")

        last = desk.launcher.opened[-1]
        assert (last.acp_session_id, last.mode, last.generation) == (None, "plan", 2)
        assert desk.session().acp_session_id == "conversation-3"


async def test_a_mode_given_while_the_agent_starts_is_set_before_the_prompt(
    tmp_path: Path,
) -> None:
    async with running_desk(tmp_path) as desk:
        started = asyncio.Event()
        desk.launcher.opening = started.wait
        await desk.hear(to_demo("hello"))
        await desk.until(lambda: bool(desk.launcher.opened))

        await desk.hear(to_demo("mode plan"))
        started.set()
        await desk.reached(1, "done")

        assert [line.what for line in desk.launcher.lines] == ["open", "configure", "prompt"]
        assert desk.launcher.told("configure") == ["plan"]


async def test_queue_now_runs_what_waits_although_what_ran_ends_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_desk(tmp_path) as desk:
        first, second = asyncio.Event(), asyncio.Event()
        waits = iter((first, second))
        desk.launcher.script = lambda _listener: next(waits).wait()
        await desk.hear(to_demo("first"))
        await desk.reached(1, "prompted")
        await desk.hear(to_demo("second"))
        change = desk.stores.decisions.change

        async def late(place: PlaceKey, effects: Sequence[Effect]) -> Sequence[int]:
            first.set()
            await desk.reached(2, "prompted")
            return await change(place, effects)

        monkeypatch.setattr(desk.stores.decisions, "change", late)
        await desk.manager.queue(desk.session().id, "now")
        second.set()
        await desk.until(lambda: desk.turn(2).state not in {"starting", "prompted"})

        assert [desk.turn(number).state for number in (1, 2)] == [TurnState.DONE, TurnState.DONE]


async def test_queue_now_stops_what_runs_and_runs_what_waits(tmp_path: Path) -> None:
    async with running_desk(tmp_path) as desk:
        waits = iter((asyncio.Event().wait, asyncio.Barrier(1).wait))
        desk.launcher.script = lambda _listener: next(waits)()
        await desk.hear(to_demo("first"))
        await desk.reached(1, "prompted")
        await desk.hear(to_demo("second"))

        await desk.hear(to_demo("queue now"))
        await desk.reached(2, "done")

        assert desk.turn(1).state == TurnState.CANCELLED


async def test_queue_now_leaves_what_runs_alone_when_nothing_waits(tmp_path: Path) -> None:
    async with running_desk(tmp_path) as desk:
        over = asyncio.Event()
        desk.launcher.script = lambda _listener: over.wait()
        await desk.hear(to_demo("first"))
        await desk.reached(1, "prompted")

        await desk.hear(to_demo("queue now"))
        over.set()
        await desk.until(lambda: desk.turn(1).state != "prompted")

        assert desk.turn(1).state == TurnState.DONE


async def test_a_stop_goes_to_all_agents_at_once(tmp_path: Path) -> None:
    agents = ("ada", "bob", "cleo", "dan")
    async with running_desk(tmp_path, rules=Rules(agents=agents)) as desk:
        desk.launcher.script = lambda _listener: asyncio.Event().wait()
        await desk.hear(replace(heard("hello"), mentions=agents))
        await desk.until(lambda: len(desk.launcher.told("prompt")) == len(agents))
        desk.launcher.cancelling = asyncio.Barrier(len(agents)).wait

        await desk.hear(heard("stop"))
        for turn in (1, 2, 3, 4):
            await desk.reached(turn, "cancelled")


async def test_the_next_message_releases_everything_held_in_a_session(tmp_path: Path) -> None:
    async with running_desk(tmp_path) as desk:
        desk.launcher.script = lambda _listener: asyncio.Event().wait()
        await desk.hear(to_demo("one"))
        await desk.reached(1, "prompted")
        # The same session reached another way, as an issue and its pull request are.
        other = {"service": "web", "external": "t2", "agent": "demo", "session": 1, "place": 1}
        await desk.database.writer.run(
            lambda connection: connection.execute(insert(surface), other)
        )
        await desk.hear(to_demo("two"))
        await desk.hear(replace(to_demo("three"), external="t2"))
        await desk.hear(to_demo("stop"))
        await desk.reached(1, "cancelled")
        assert desk.stores.turns.next_turn(1) is None

        desk.launcher.script = lambda listener: listener.on_update(TextUpdate("ok"))
        await desk.hear(replace(to_demo("four"), external="t2"))
        await desk.reached(3, "done")

        told = [prompt.splitlines()[1:] for prompt in desk.launcher.told("prompt")]
        assert told == [["one"], ["two"], ["[Ann:]", "three", "[Ann:]", "four"]]


async def test_history_begins_where_new_was_said_and_is_joined_per_answer(tmp_path: Path) -> None:
    async def in_pieces(listener: AgentListener) -> None:
        await listener.on_update(TextUpdate("half an answer, "))
        await listener.on_update(ToolUpdate("c1", title="Look", status="completed"))
        await listener.on_update(TextUpdate("and the rest"))

    async with running_desk(tmp_path) as desk:
        await desk.hear(to_demo("old plan"))
        await desk.reached(1, "done")
        await desk.hear(to_demo("new"))
        desk.launcher.script = in_pieces
        await desk.hear(to_demo("other topic"))
        await desk.reached(2, "done")
        await desk.live.end(desk.session().id)
        desk.launcher.remembers = False

        await desk.hear(to_demo("go on"))
        await desk.reached(3, "done")

        prompt = desk.launcher.told("prompt")[-1]
        assert "Ann: other topic\nyou: half an answer, and the rest\n" in prompt
        assert "old plan" not in prompt


async def test_a_secret_cut_in_two_is_not_joined_again_for_an_agent_that_lost_its_memory(
    tmp_path: Path,
) -> None:
    secret = "hunter2-hunter2-hunter2"

    async def in_two(listener: AgentListener) -> None:
        await listener.on_update(TextUpdate(f"it is {secret[:12]}"))
        await listener.on_update(ToolUpdate("c1", title="Look", status="completed"))
        await listener.on_update(TextUpdate(f"{secret[12:]}, as you know"))

    async with running_desk(tmp_path, rules=Rules(secrets=(secret,))) as desk:
        desk.launcher.script = in_two
        await desk.hear(to_demo("tell me"))
        await desk.reached(1, "done")
        await desk.live.end(desk.session().id)
        desk.launcher.remembers = False

        await desk.hear(to_demo("again"))
        await desk.reached(2, "done")

        assert "you: it is [secret], as you know" in desk.turn(2).prompt
        assert secret not in "".join(post.content.text for post in desk.posts())


async def test_paging_lists_all_sessions_although_their_times_are_equal(tmp_path: Path) -> None:
    async with running_desk(tmp_path, clock=ManualClock()) as desk:
        for number in range(10):
            await desk.stores.decisions.accept(decision(heard("hello", f"t{number}"), "demo"))

        assert await listed(desk, limit=4) == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize("command", ["stop", "stop all"])
async def test_a_stop_where_nothing_runs_or_waits_says_so(tmp_path: Path, command: str) -> None:
    async with running_desk(tmp_path) as desk:
        await desk.hear(to_demo("hello"))
        await desk.reached(1, "done")

        await desk.hear(to_demo(command))

        await desk.until(lambda: desk.posts()[-1].content.note == "Nothing is running here.")
        assert desk.turn(1).state == TurnState.DONE


async def test_the_list_of_threads_says_where_each_one_works(tmp_path: Path) -> None:
    async with running_desk(tmp_path) as desk:
        await desk.hear(to_demo("hello"))
        await desk.hear(to_demo("hello", "t2"))
        await desk.hear(to_demo("repo acme/widget", "t2"))

        listed = await desk.stores.conversations.list(Wanted(), limit=5)

        assert {each.place.name: each.repository for each in listed} == {
            "t1": "",
            "t2": "acme/widget",
        }
