"""The operator pauses, resumes and drains a bridge while people talk: nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.bridge import demo
from tests.support.invariants import violations
from tests.support.terminal import run, succeed
from tests.support.world import World

# Several commands, each a separate process, on a machine that many share.
pytestmark = pytest.mark.timeout(180)


def told(world: World, place: str) -> int:
    """Count how often a place was told that it is paused."""
    return sum("has paused" in post.note for post in world.platform.shown("notice", place))


def begun(world: World) -> int:
    """Count the turns that have begun."""
    return int(world.bridge.rows("select count(*) from turn where state <> 'queued'")[0][0])


def wait_begun(world: World, count: int) -> None:
    world.bridge.wait(lambda: begun(world) == count, f"not {count} turns began")


def ready(world: World) -> bool:
    return world.bridge.http.get("/readyz").status_code == 200


def test_a_pause_keeps_messages_tells_each_place_once_and_lasts_over_a_crash(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        queued = world.say("t1", "say behind it")
        world.wait_decided(queued)

        assert "Everything is paused" in succeed(world.bridge, "pause", "--all")
        for place in ("t1", "t2", "t2"):
            world.wait_decided(world.say(place, "say later"))
        world.touch("go")
        world.wait_for("done", number=0)
        world.kill()
        assert "Everything is paused" in world.bridge.http.get("/", follow_redirects=True).text
        paused = json.loads(succeed(world.bridge, "pauses", "--json"))
        again = run(world.bridge, "resume", "demo")

        assert [(each["kind"], each["reason"]) for each in paused] == [("all", "operator")]
        assert (again.returncode, "not paused" in again.stderr) == (1, True)
        assert begun(world) == 1
        assert [world.turns(place)[-1].state for place in ("t1", "t2")] == ["queued", "queued"]

        assert succeed(world.bridge, "resume", "--all") == "Nothing is paused.\n"
        world.settle()
        world.end()
        assert violations(world) == []
        assert (told(world, "t1"), told(world, "t2")) == (1, 1)


@pytest.mark.long
def test_an_agent_or_a_place_is_paused_while_others_work(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.bridge.agents["other"] = demo()
    with world:
        world.say("c1:a", "say first")
        world.settle()
        world.end()
        # Without a bridge the store is changed itself.
        assert "demo is paused" in succeed(world.bridge, "pause", "demo")
        assert "web:c2 is paused" in succeed(world.bridge, "pause", "web:c2")
        world.bridge.start()

        world.say("c1:a", "say later")
        world.say("c2:a", "say later", "other")
        world.say("c20:a", "say now", "other")
        wait_begun(world, 2)
        world.wait_for("done", "c20:a")
        assert (told(world, "c1:a"), told(world, "c2:a"), told(world, "c20:a")) == (1, 1, 0)
        succeed(world.bridge, "resume", "web:c2")
        world.wait_for("done", "c2:a")
        assert begun(world) == 3
        succeed(world.bridge, "resume", "demo")
        world.settle()
        world.end()
        assert violations(world) == []


@pytest.mark.long
@pytest.mark.skipif(postgres.is_wanted(), reason="the release before knows SQLite alone")
def test_a_bridge_is_drained_in_mid_turn_rolled_back_and_upgraded_and_goes_on(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nhold go")
        world.wait_file("here")
        world.say("t2", "write notes.txt hello")
        world.bridge.wait(lambda: bool(world.platform.shown("ask")), "nothing was asked")

        late = run(world.bridge, "drain", "--wait", "--seconds", "1")
        world.wait_decided(world.say("t3", "say after the restart"))
        assert not ready(world)
        world.touch("go")
        assert "Drained" in succeed(world.bridge, "drain", "--wait")
        assert late.returncode == 1
        rows = "select state from turn order by id"
        assert world.bridge.rows(rows) == [("done",), ("parked",), ("queued",)]

        running = run(world.bridge, "migrate", "--back", "--yes")
        world.end()
        assert "Start the release before" in succeed(world.bridge, "migrate", "--back", "--yes")
        assert (running.returncode, "in use" in running.stderr) == (1, True)
        world.bridge.start()
        world.bridge.wait(lambda: ready(world), "never ready")
        world.settle()
        assert [turn.state for turn in world.turns("t3")] == ["done"]
        assert world.turns("t2")[-1].state == "done"
        assert (world.bridge.workspace(session=2) / "notes.txt").read_text().strip() == "hello"
        assert len(world.platform.shown("ask")) == 1


@pytest.mark.long
def test_a_drain_that_is_undone_begins_what_waits(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        succeed(world.bridge, "drain", "--wait")
        world.wait_decided(world.say("t1", "say hello"))
        assert begun(world) == 0

        assert "begin again" in succeed(world.bridge, "drain", "--undo")
        world.settle()
        world.end()
        assert violations(world) == []
