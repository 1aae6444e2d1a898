"""Kill -9 of the bridge at every step: nothing is lost or doubled, the place says what happened."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.invariants import agent_processes, told, violations
from tests.support.postgres import only_on_files
from tests.support.variants import quick
from tests.support.world import World

Point = tuple[str, Literal["before", "after"]]

# Makes every kind of update: plan, thought, a kind that nobody knows, text, tool, ask, usage.
STORY = """\
plan look; act
thoughts 1
garbage 15
say precious words
write notes.txt kept"""

BEFORE_THE_PROMPT: list[Point] = [
    ("adapter.verify", "before"),
    ("adapter.verify", "after"),
    ("deliveries.add", "before"),
    ("deliveries.add", "after"),
    ("commit", "before"),
    ("commit", "after"),
    ("ack", "before"),
    ("ack", "after"),
    ("decisions.accept", "before"),
    ("decisions.accept", "after"),
    ("turns.starting", "before"),
    ("turns.starting", "after"),
    ("processes.started", "before"),
    ("processes.started", "after"),
    ("agent.initialize", "before"),
    ("agent.initialize", "after"),
    ("agent.session/new", "before"),
    ("agent.session/new", "after"),
    ("turns.prompted", "before"),
]
DURING_THE_PROMPT: list[Point] = [
    ("turns.prompted", "after"),
    ("agent.session/prompt", "before"),
    ("agent.session/prompt", "after"),
    ("transcript.append.plan", "before"),
    ("transcript.append.plan", "after"),
    ("transcript.append.thought", "before"),
    ("transcript.append.thought", "after"),
    ("transcript.append.notice", "before"),
    ("transcript.append.notice", "after"),
    ("transcript.append.text", "before"),
    ("transcript.append.text", "after"),
    ("transcript.append.tool", "before"),
    ("transcript.append.tool", "after"),
    ("asks.open", "before"),
    ("asks.open", "after"),
    ("asks.answer", "before"),
    ("asks.answer", "after"),
    ("transcript.append.usage", "before"),
    ("transcript.append.usage", "after"),
    ("agent.answer", "before"),
    ("turns.finish", "before"),
]
ON_THE_WAY_OUT: list[Point] = [
    ("adapter.send.create", "before"),
    ("adapter.send.create", "after"),
    ("posts.sent", "before"),
    ("posts.sent", "after"),
    ("turns.finish", "after"),
    ("adapter.send.finish", "before"),
    ("adapter.send.finish", "after"),
]
ALIKE = tuple(f"transcript.append.{kind}" for kind in ("plan", "thought", "notice", "usage"))
"""Rows like those of text and tool calls."""
EVERYWHERE = [*BEFORE_THE_PROMPT, *DURING_THE_PROMPT, *ON_THE_WAY_OUT]
FROM_THE_AGENT = [
    f"agent.{what}"
    for what in (
        "update.plan",
        "update.agent_thought_chunk",
        "update.agent_message_chunk",
        "update.tool_call",
        "update.tool_call_update",
        "update.usage_update",
        "ask",
        "answer",
    )
]


def points(steps: list[Point]) -> list[Any]:
    """List points to die at; half of the steps, and what is just before a step, can wait."""
    first = [step for step, when in steps if when == "after" and step not in ALIKE][::2]
    return [
        pytest.param(
            (step, when),
            marks=[] if not number or (when == "after" and step in first) else [pytest.mark.slow],
            id=f"{step}-{when}",
        )
        for number, (step, when) in enumerate(steps)
    ]


def play(folder: Path, point: Point) -> World:
    """Tell a story in which the bridge dies at a step, then have it recalled."""
    step, when = point
    with World(folder, deadly=True, new_delivery_ids=when == "after") as world:
        world.bridge.arm(step, when)
        world.say("t1", STORY)
        world.settle(lambda: world.deaths == 1)
        world.say("t1", "recall")
        world.settle()
        world.end()
        return world


@pytest.mark.parametrize("point", points(BEFORE_THE_PROMPT))
def test_an_event_is_worked_on_as_if_nothing_had_happened_when_the_crash_came_before_its_prompt(
    tmp_path: Path, point: Point
) -> None:
    world = play(tmp_path, point)

    assert violations(world) == []
    first, second = world.turns()
    assert (first.state, first.note) == ("done", "")
    assert "precious words" in first.text
    assert "word-001" in second.text


@pytest.mark.long
@pytest.mark.parametrize("point", points(DURING_THE_PROMPT))
def test_a_turn_that_was_cut_off_is_continued_once_and_says_so(
    tmp_path: Path, point: Point
) -> None:
    world = play(tmp_path, point)

    assert violations(world) == []
    first, second = world.turns()
    assert (first.state, world.bridge.rows("select cuts from turn")) == ("done", [(1,), (0,)])
    assert "picking up where it left off" in first.note
    assert "precious words" in first.text
    assert "word-001" in second.text


@pytest.mark.long
@pytest.mark.parametrize("point", points(ON_THE_WAY_OUT))
def test_a_post_is_neither_lost_nor_repeated_when_the_crash_came_while_it_was_sent(
    tmp_path: Path, point: Point
) -> None:
    world = play(tmp_path, point)

    assert violations(world) == []
    first, second = world.turns()
    assert first.state == "done"
    assert "precious words" in first.text
    assert "word-001" in second.text


def test_no_turn_goes_on_before_it_is_known_which_posts_may_have_arrived(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.bridge.arm("posts.sent", "before")
        world.say("t1", "say hello")
        world.bridge.wait_dead()
        world.bridge.arm("posts.unsent", "before", act="pause")
        world.revive()
        world.bridge.wait_reached()

        with pytest.raises(TimeoutError):
            world.wait_for("done", seconds=1.0)
        world.bridge.let_go()
        world.settle()
        world.end()

        assert violations(world) == []
        assert [post.text for post in world.turns()] == ["hello\n\nword-001"]


@pytest.mark.parametrize("when", quick(1, ["after", "before"]))
def test_a_session_that_was_being_parked_in_the_crash_comes_back_with_its_memory(
    tmp_path: Path, when: Literal["before", "after"]
) -> None:
    with World(tmp_path, entry={"idle_minutes": 0.001}) as world:
        world.bridge.arm("processes.ended", when)
        world.say("t1", "say once")
        world.settle(lambda: world.deaths == 1)

        world.say("t1", "recall")
        world.settle()
        world.end()

        assert violations(world) == []
        assert "word-001" in world.turns()[1].text
        assert world.turns()[0].note == ""


@pytest.mark.long
def test_a_second_cut_is_a_visible_failure_and_never_a_third_try(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        word = world.say("t1", "tell here\nhold never")
        world.wait_file("here", take=True)
        world.kill()
        world.wait_file("here", take=True)
        world.kill()

        world.settle()
        world.say("t1", "say anew")
        world.settle()
        world.end()

        assert violations(world) == []
        first, second = world.turns()
        assert len(told(world, word)) == 2
        assert (first.state, second.state) == ("failed", "done")
        assert "restarted twice" in first.note
        assert "Send the message again" in first.note


@only_on_files("a member recovers turns when it joins")
@pytest.mark.long
@pytest.mark.parametrize("when", quick(1, ["after", "before"]))
def test_a_crash_while_recovering_does_not_count_as_a_second_cut(
    tmp_path: Path, when: Literal["before", "after"]
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        world.bridge.arm("turns.recover", when)
        world.kill()

        world.touch("go")
        world.settle(lambda: world.deaths == 2)
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (post.state, world.bridge.rows("select cuts from turn")) == ("done", [(1,)])


@pytest.mark.parametrize(
    "point",
    quick(
        2,
        {
            "-".join(point): (point,)
            for point in (
                ("decisions.accept", "after"),
                ("agent.session/cancel", "after"),
                ("agent.session/cancel", "before"),
                ("turns.finish", "before"),
            )
        },
    ),
)
def test_a_turn_that_was_cut_off_while_it_was_being_stopped_ends_as_stopped(
    tmp_path: Path, point: Point
) -> None:
    with World(tmp_path, deadly=True) as world:
        word = world.say("t1", "tell here\nhold never")
        world.wait_file("here")
        world.bridge.arm(*point)

        world.command("t1", "stop")
        world.settle(lambda: world.deaths == 1)
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (post.state, post.note) == ("stopped", "Stopped.")
        assert len(told(world, word)) == 1


def test_a_stop_that_was_only_acknowledged_in_the_crash_stops_the_continued_turn(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold never")
        world.wait_file("here")
        world.bridge.arm("decisions.accept", "before")

        world.command("t1", "stop")
        world.settle(lambda: world.deaths == 1)
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert post.state == "stopped"
        assert "Stopped." in post.note


def test_what_waits_behind_a_turn_that_was_cut_off_runs_after_it_in_order(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        world.say("t1", "say second", speaker="Bob")
        world.say("t1", "say third", speaker="Cleo")

        world.kill()
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        first, second = world.turns()
        assert "picking up where it left off" in first.note
        assert second.text == "second\n\nword-002\n\nthird\n\nword-003"


@pytest.mark.long
def test_a_message_never_overtakes_one_that_waited_before_the_crash(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.bridge.arm("turns.prompted", act="pause")
        world.say("t1", "say first")
        world.bridge.wait_reached()
        world.say("t1", "say second")
        world.wait_for("queued", number=1)
        world.bridge.kill()

        world.bridge.arm("turns.starting", act="pause")
        world.revive()
        world.bridge.wait_reached()
        word = world.say("t1", "say third")
        world.wait_decided(word)
        world.bridge.let_go()
        world.settle()
        world.end()

        assert violations(world) == []
        first, second = world.turns()
        assert first.text == "first\n\nword-001"
        assert second.text == "second\n\nword-002\n\nthird\n\nword-003"


def test_an_agent_that_cannot_bring_its_conversation_back_gets_the_transcript_and_the_place_is_told(
    tmp_path: Path,
) -> None:
    faults = {"AGENT_BRIDGE_DEMO_FAULTS": "1,no-load"}
    with World(tmp_path, entry={"env": faults}) as world:
        earlier = world.say("t1", "say an earlier answer")
        world.settle()
        word = world.say("t1", "tell here\nhold go")
        world.wait_file("here")

        world.kill()
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        (prompt,) = (prompt for prompt in told(world, word) if "continuation" in prompt)
        assert earlier in prompt.partition("</data>")[0]
        assert "an earlier answer" in prompt.partition("</data>")[0]
        assert "could not restore its conversation" in world.turns()[1].note
        assert "picking up where it left off" in world.turns()[1].note


def test_an_ask_of_the_time_before_the_crash_is_lost_visibly_and_asked_anew(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "write notes.txt kept")
        world.platform.wait(lambda _: len(world.platform.shown("ask")) == 1)
        world.kill()
        world.platform.wait(lambda _: len(world.platform.shown("ask")) == 2)

        world.answer(1, "reject")
        world.answer(2, "allow")
        world.settle()
        world.end()

        assert violations(world) == []
        lost, renewed = world.platform.shown("ask")
        assert (lost.state, renewed.state) == ("lost", "answered")
        assert "asks again" in lost.note
        assert (world.bridge.workspace() / "notes.txt").read_text() == "kept\n"
        assert world.bridge.rows("select reason from delivery where state = 'refused'") == [
            ("the bridge restarted before this was answered; the agent asks again if needed",)
        ]


@pytest.mark.long
def test_what_a_crash_left_running_is_ended_at_the_next_start(tmp_path: Path) -> None:
    with World(tmp_path, deadly=True) as world:
        world.bridge.arm("agent.session/prompt", "after")
        world.say("t1", "say hello")
        world.bridge.wait_dead()
        # The reaper ends them at once, else the next start does.
        left = agent_processes(world.bridge.data_dir)

        world.settle()

        assert not set(left) & set(agent_processes(world.bridge.data_dir))
        world.end()
        assert violations(world) == []


@pytest.mark.long
def test_a_bridge_is_ready_again_after_a_crash(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")

        world.kill()

        world.bridge.wait(lambda: world.bridge.http.get("/readyz").status_code == 200, "not ready")
        world.touch("go")
        world.settle()
        assert world.turns()[0].state == "done"


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, 41))
def test_kill_9_around_any_commit_keeps_every_promise(
    tmp_path: Path, nth: int, when: Literal["before", "after"]
) -> None:
    with World(tmp_path, deadly=True, new_delivery_ids=nth % 2 == 0) as world:
        world.bridge.arm("commit", when, nth)
        world.say("t1", STORY)
        world.settle()
        world.say("t1", "recall")
        world.settle()
        world.end()

        assert violations(world) == []
        assert [post.state for post in world.turns()] == ["done", "done"]


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", FROM_THE_AGENT)
def test_kill_9_when_the_agent_speaks_keeps_every_promise(
    tmp_path: Path, step: str, when: Literal["before", "after"]
) -> None:
    assert violations(play(tmp_path, (step, when))) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_kill_9_at_two_steps_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    first, second = random.Random(seed).sample(EVERYWHERE, 2)
    with World(tmp_path, deadly=True, new_delivery_ids=seed % 2 == 0) as world:
        world.bridge.arm(*first)
        world.say("t1", STORY)
        world.settle(lambda: world.deaths == 1)
        world.bridge.arm(*second)
        world.say("t1", STORY)
        world.settle()
        world.say("t1", "recall")
        world.settle()
        world.end()

        assert violations(world) == []
