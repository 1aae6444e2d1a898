"""What is said while a turn runs, and what stop does to it: nothing happens after stop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bridge import demo
from tests.support.hook import message
from tests.support.invariants import told, violations
from tests.support.world import World


def test_messages_that_arrive_while_a_turn_runs_are_joined_into_the_next_with_their_speakers(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")

        word = world.say("t1", "say second", speaker="Bob")
        world.say("t1", "say third", speaker="Cleo")
        world.wait_for("queued", number=1)
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        (prompt,) = told(world, word)
        assert len(world.turns()) == 2
        assert prompt == (
            "[Bob and Cleo on web, web:t1:demo]\n"
            "[Bob:]\nsay second\nsay word-002\n"
            "[Cleo:]\nsay third\nsay word-003"
        )


def test_stop_ends_the_turn_and_holds_what_waits_until_the_next_message(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "say begun\ntell here\nhold never")
        world.wait_file("here")
        held = world.say("t1", "say waiting", speaker="Bob")
        world.wait_decided(held)

        world.command("t1", "stop")
        world.settle()
        stopped, waiting = world.turns()
        after_stop = (stopped.state, stopped.note, waiting.state, len(told(world, held)))
        world.say("t1", "say released", speaker="Cleo")
        world.settle()
        world.end()

        assert violations(world) == []
        assert after_stop == (
            "stopped",
            "Stopped. 1 message on hold.",
            "queued",
            0,
        )
        assert stopped.text == "begun"
        assert waiting.text == "waiting\n\nword-002\n\nreleased\n\nword-003"


def test_stop_all_also_drops_what_waits(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold never")
        world.wait_file("here")
        dropped = world.say("t1", "say waiting")
        world.wait_decided(dropped)

        world.command("t1", "stop all")
        world.settle()
        world.say("t1", "say afterwards")
        world.settle()
        world.end()

        assert violations(world) == []
        first, second, third = world.turns()
        assert [first.state, second.state, third.state] == ["stopped", "stopped", "done"]
        assert second.note == "Dropped before it began."
        assert told(world, dropped) == []


@pytest.mark.parametrize(
    ("command", "state", "times"), [("queue now", "done", 1), ("queue drop", "stopped", 0)]
)
def test_what_was_held_runs_or_is_dropped_on_command(
    tmp_path: Path, command: str, state: str, times: int
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold never")
        world.wait_file("here")
        held = world.say("t1", "say waiting")
        world.wait_decided(held)
        world.command("t1", "stop")
        world.settle()

        world.command("t1", command)
        world.wait_for(state, number=1)
        world.settle()
        world.end()

        assert violations(world) == []
        assert len(told(world, held)) == times


@pytest.mark.long
def test_what_is_held_stays_held_over_a_crash(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold never")
        world.wait_file("here")
        held = world.say("t1", "say waiting")
        world.wait_decided(held)
        world.command("t1", "stop")
        world.settle()

        world.kill()
        world.say("t2", "say elsewhere")
        world.settle()
        untouched = (world.turns()[1].state, told(world, held))
        world.command("t1", "queue now")
        world.wait_for("done", number=1)
        world.settle()
        world.end()

        assert violations(world) == []
        assert untouched == ("queued", [])


def test_nothing_that_the_agent_does_after_a_stop_is_shown(tmp_path: Path) -> None:
    with World(tmp_path, deadly=True) as world:
        world.say("t1", "say shown\ntell here\nhold go\nsay hidden\nwrite secret.txt no")
        world.wait_file("here")
        world.bridge.arm("agent.session/cancel", act="ignore")

        world.command("t1", "stop")
        world.bridge.wait_reached()
        world.touch("go")
        world.settle()
        world.say("t1", "say next")
        world.settle()
        world.end()

        assert violations(world) == []
        stopped, following = world.turns()
        rows = world.bridge.rows("select text from transcript where turn = 1 and kind = 'text'")
        assert (stopped.state, stopped.text) == ("stopped", "shown")
        assert rows == [("shown",)]
        assert world.platform.shown("ask") == []
        assert not (world.bridge.workspace() / "secret.txt").exists()
        assert following.text == "next\n\nword-002"


def test_a_stop_while_a_person_is_asked_cancels_the_ask(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "write notes.txt no")
        world.platform.wait(lambda _: len(world.platform.shown("ask")) == 1)

        world.command("t1", "stop")
        world.wait_for("stopped")
        world.answer(1, "allow")
        world.settle()
        world.end()

        assert violations(world) == []
        (ask,) = world.platform.shown("ask")
        assert ask.state == "cancelled"
        assert not (world.bridge.workspace() / "notes.txt").exists()


def test_a_stop_that_comes_while_a_turn_is_ending_does_not_run_it_again(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.bridge.arm("turns.finish", act="pause")
        word = world.say("t1", "say all done")
        world.bridge.wait_reached()

        world.command("t1", "stop")
        world.command("t1", "status")
        world.bridge.wait(lambda: len(world.platform.shown("notice")) == 1, "no status")
        world.bridge.let_go()
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert len(told(world, word)) == 1
        assert (post.state, post.text) == ("done", "all done\n\nword-001")


def test_a_stop_before_the_prompt_keeps_the_agent_from_ever_hearing_it(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.bridge.arm("turns.prompted", act="pause")
        word = world.say("t1", "say never")
        world.bridge.wait_reached()

        world.command("t1", "stop")
        world.wait_for("stopped")
        world.bridge.let_go()
        world.say("t1", "say next")
        world.settle()
        world.end()

        assert violations(world) == []
        assert told(world, word) == []
        assert [post.state for post in world.turns()] == ["stopped", "done"]


def test_the_same_event_again_leads_to_nothing_new(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.bridge.agents["other"] = demo()
        world.restart()
        event = message("t1", "say once", "demo")
        edited = message("t1", "say twice", "demo", message_id=event["message_id"])

        for delivery_id in ("first", "first", "second"):
            assert world.bridge.deliver(event, delivery_id=delivery_id) == 200
        # Either agent's adapter may decide on what both have heard.
        decided = "select reason from delivery where delivery_id = 'first'"
        world.bridge.wait(lambda: world.bridge.rows(decided) == [("mentioned",)], "not decided")
        assert world.bridge.deliver(event, agent="other", delivery_id="third") == 200
        assert world.bridge.deliver(edited, delivery_id="fourth") == 200
        world.settle()
        world.say("t1", "recall")
        world.settle()
        world.end()

        assert violations(world) == []
        first, second = world.turns()
        deliveries = world.bridge.rows(
            "select adapter, delivery_id, reason from delivery order by seq"
        )
        assert first.text == "once"
        assert "twice" not in second.text
        assert deliveries[:3] == [
            ("web:demo", "first", "mentioned"),
            ("web:other", "third", "decided_before"),
            ("web:demo", "fourth", "decided_before"),
        ]


def test_one_message_to_two_agents_is_one_turn_each_whoever_hears_it_first(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.bridge.agents["other"] = demo()
        world.restart()

        world.say("t1", "say to both", "demo", "other")
        world.deliver(world.said[0].event, agent="other")
        world.settle()
        world.end()

        assert violations(world) == []
        assert sorted(post.target for post in world.turns()) == ["web:t1:demo", "web:t1:other"]
