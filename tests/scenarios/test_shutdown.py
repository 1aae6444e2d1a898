"""SIGTERM: what runs gets its grace time, the next start carries on, no process stays."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.hook import message
from tests.support.invariants import agent_processes, told, violations
from tests.support.world import Said, World

AT_ONCE = {"GRACE_SECONDS": "0"}
LONG = {"GRACE_SECONDS": "600"}
"""Far longer than a test waits for a bridge to end."""


@pytest.mark.long
def test_a_turn_that_outlasts_the_grace_time_is_continued_at_the_next_start_without_a_cut(
    tmp_path: Path,
) -> None:
    with World(tmp_path, settings={"GRACE_SECONDS": "0.2"}) as world:
        word = world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        waiting = world.say("t1", "say waited", speaker="Bob")
        world.wait_decided(waiting)

        world.end()
        left = agent_processes(world.bridge.data_dir)
        put_back = world.bridge.rows("select state, cuts, continued from turn order by id")
        world.bridge.start()
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        first, second = world.turns()
        assert left == []
        assert put_back == [("queued", 0, 1), ("queued", 0, 0)]
        assert (first.state, second.state) == ("done", "done")
        assert "picking up where it left off" in first.note
        assert len(told(world, word)) == 2


def test_a_turn_that_ends_within_the_grace_time_is_shown_before_the_bridge_leaves(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        word = world.say("t1", "tell here\nhold go")
        world.wait_file("here")

        world.bridge.terminate()
        world.bridge.wait(lambda: not world.bridge.listens, "still listens")
        world.touch("go")
        status = world.bridge.wait_dead()

        assert violations(world) == []
        (post,) = world.turns()
        assert status == 0
        assert (post.state, post.note) == ("done", "")
        assert len(told(world, word)) == 1


@pytest.mark.long
def test_polite_ends_never_count_as_cuts(tmp_path: Path) -> None:
    with World(tmp_path, settings=AT_ONCE) as world:
        word = world.say("t1", "tell here\nhold go")
        world.wait_file("here", take=True)
        world.restart()
        world.wait_file("here", take=True)
        world.restart()
        world.wait_file("here", take=True)
        world.kill()
        world.wait_file("here", take=True)
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert post.state == "done"
        assert len(told(world, word)) == 4
        assert world.bridge.rows("select cuts from turn") == [(1,)]


@pytest.mark.long
def test_a_turn_that_had_not_been_prompted_is_run_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    with World(tmp_path, settings=AT_ONCE) as world:
        world.bridge.arm("turns.prompted", act="pause")
        word = world.say("t1", "say hello")
        world.bridge.wait_reached()

        world.restart()
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (post.state, post.note) == ("done", "")
        assert len(told(world, word)) == 1


@pytest.mark.long
def test_an_ask_that_is_open_at_the_end_holds_nobody_up_and_is_asked_anew_at_the_next_start(
    tmp_path: Path,
) -> None:
    with World(tmp_path, settings=LONG) as world:
        world.say("t1", "write notes.txt kept")
        world.platform.wait(lambda _: len(world.platform.shown("ask")) == 1)

        world.restart()
        world.settle()
        world.end()

        assert violations(world) == []
        lost, renewed = world.platform.shown("ask")
        assert (lost.state, renewed.state) == ("lost", "answered")
        assert (world.bridge.workspace() / "notes.txt").read_text() == "kept\n"


def test_a_turn_whose_stop_was_committed_but_not_carried_out_ends_as_stopped(
    tmp_path: Path,
) -> None:
    with World(tmp_path, settings=AT_ONCE) as world:
        word = world.say("t1", "tell here\nhold never")
        world.wait_file("here")
        world.bridge.arm("decisions.accept", "after", act="pause")
        world.command("t1", "stop")
        world.bridge.wait_reached()

        world.restart()
        world.settle()
        world.end()

        assert violations(world) == []
        (post,) = world.turns()
        assert (post.state, post.note) == ("stopped", "Stopped.")
        assert len(told(world, word)) == 1


@pytest.mark.long
def test_events_that_arrive_while_the_bridge_leaves_are_kept_or_refused_but_never_lost(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        asked = [message(f"p{number}", f"say word-90{number}", "demo") for number in range(4)]
        overheard = [message("p9", "nobody is meant") for _ in range(28)]
        events = [*asked[:2], *overheard, *asked[2:]]
        statuses: dict[str, int] = {}

        def send(event: dict[str, Any]) -> None:
            statuses[event["message_id"]] = world.bridge.deliver(event)

        senders = [threading.Thread(target=send, args=(event,)) for event in events]
        for sender in senders[:24]:
            sender.start()
        world.bridge.terminate()
        world.bridge.wait(lambda: not world.bridge.listens, "still listens")
        for sender in senders[24:]:
            sender.start()
        for sender in senders:
            sender.join()
        world.touch("go")
        world.bridge.wait_dead()
        world.bridge.start()
        for event in events:
            world.deliver(event)
        world.said += [Said(event, event["text"][-8:], ("demo",)) for event in asked]
        world.said += [Said(event, "", ()) for event in overheard]
        world.settle()
        world.end()

        assert violations(world) == []
        assert set(statuses.values()) <= {200, 503, 0}
        assert {statuses[event["message_id"]] for event in events[24:]} == {0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_grace_time(tmp_path: Path, number: int) -> None:
    with World(tmp_path, settings={"GRACE_SECONDS": "3600"}) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        assert world.bridge.process is not None

        world.bridge.process.send_signal(number)
        world.bridge.wait(lambda: not world.bridge.listens, "still listens")
        world.bridge.process.send_signal(number)
        status = world.bridge.wait_dead()

        assert status == 0
        assert world.bridge.rows("select state, cuts, continued from turn order by id") == [
            ("queued", 0, 1)
        ]
        assert agent_processes(world.bridge.data_dir) == []


def test_a_bridge_with_agents_that_do_not_leave_ends_all_the_same(tmp_path: Path) -> None:
    stubborn = {"AGENT_BRIDGE_DEMO_FAULTS": "1,slow-exit"}
    with World(tmp_path, settings=AT_ONCE, entry={"env": stubborn}) as world:
        world.say("t1", "children 4\ntell here\nhold never")
        world.wait_file("here")

        world.end()

        assert agent_processes(world.bridge.data_dir) == []
        assert world.bridge.rows("select count(*) from process") == [(0,)]


def test_the_bridge_waits_for_an_agent_that_is_being_parked(tmp_path: Path) -> None:
    stubborn = {"AGENT_BRIDGE_DEMO_FAULTS": "1,slow-exit"}
    with World(tmp_path, entry={"env": stubborn, "idle_minutes": 0.001}) as world:
        world.say("t1", "say hello")
        world.settle(lambda: world.bridge.logged("session 1 is parked"))

        world.end()

        assert violations(world) == []


@pytest.mark.slow
def test_a_bridge_that_cannot_write_any_more_still_leaves(tmp_path: Path) -> None:
    with World(tmp_path, settings=AT_ONCE) as world:
        word = world.say("t1", "tell here\nhold go")
        world.wait_file("here", take=True)

        with world.bridge.store_locked():
            world.end()
        world.bridge.start()
        world.wait_file("here")
        world.touch("go")
        world.settle()
        world.end()

        assert violations(world) == []
        assert len(told(world, word)) == 2
