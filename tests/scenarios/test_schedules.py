"""Schedules in a real bridge on a driven clock: time changes, kill -9, days of downtime."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.bridge import ADMIN_TOKEN, SECRET_KEY
from tests.support.github import GithubWorld
from tests.support.linear import LinearWorld
from tests.support.nursery import nursery
from tests.support.slack import SlackWorld
from tests.support.variants import quick
from tests.support.world import World

SPEED = 300.0
"""Of the clock: a bridge that sleeps for a minute looks at the time again after 0.2 seconds."""
ZONES = {
    "Berlin": (
        "30 2 * * * Europe/Berlin",
        [
            "2026-03-28T01:30+00:00",  # 02:30 CET
            "2026-03-29T01:00+00:00",  # 03:00 CEST: the clocks skip 02:30
            "2026-03-30T00:30+00:00",  # 02:30 CEST
        ],
        [
            "2026-10-25T00:30+00:00",  # the first of two 02:30
            "2026-10-26T01:30+00:00",  # 02:30 CET: the second one of the day before is none
        ],
    ),
    "New York": (
        "30 1 * * * America/New_York",
        [
            "2026-03-07T06:30+00:00",
            "2026-03-08T06:30+00:00",  # the clocks skip 02:00, half an hour later
            "2026-03-09T05:30+00:00",
        ],
        [
            "2026-11-01T05:30+00:00",  # the first of two 01:30
            "2026-11-02T06:30+00:00",
        ],
    ),
}


@contextmanager
def world_at(folder: Path, moment: str) -> Iterator[World]:
    """Open a world in which it is this time until a test says otherwise."""
    world = World(folder)
    world.bridge.speed, world.bridge.clock = SPEED, folder / "clock"
    world.bridge.set_clock(moment)
    with world:
        yield world


def runs(world: World) -> list[tuple[str, str]]:
    """List the runs that became turns, with how those ended."""
    return world.bridge.rows(
        "select message.message_id, turn.state from message "
        "join heard on heard.message = message.id join turn on turn.id = heard.turn "
        "where message.message_id like 'schedule:%' order by message.id"
    )


def name(moment: str) -> str:
    """Name the run of the first schedule at a time."""
    return f"schedule:1:{datetime.fromisoformat(moment).timestamp():.0f}"


def wait_for_runs(world: World, count: int) -> None:
    """Wait until so many runs have ended, and all that they caused."""
    world.settle(lambda: sum(state == "done" for _, state in runs(world)) >= count)


def reach(world: World, moment: str, *, due: list[str]) -> None:
    """Let it be a time, and wait until these runs, and no others, have ended."""
    world.bridge.set_clock(moment)
    wanted = [(name(each), "done") for each in due]
    wait_for_runs(world, len(wanted))
    assert runs(world) == wanted


def run(world: World, *words: str) -> str:
    """Run a command next to the bridge, as its operator does; returns what it prints."""
    bridge = world.bridge
    home = {"AGENT_BRIDGE_ENV_FILE": os.devnull, "HOME": str(bridge.folder / "person")}
    known = {"PATH": os.environ["PATH"], "DATA_DIR": str(bridge.data_dir), **home}
    secret = {"BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN, "BRIDGE_SECRET_KEY": SECRET_KEY}
    agents = {"AGENTS_JSON": json.dumps(bridge.agents), "PORT": str(bridge.port)}
    environment = {**known, **secret, **agents}
    done = nursery().run(*words, environment=environment, cwd=bridge.folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def announced(world: World) -> list[str]:
    """List what the place was told when runs began."""
    posts = world.platform.shown("notice")
    return [post.note for post in posts if post.note.startswith("Schedule 1 by")]


@pytest.mark.long
@pytest.mark.parametrize(("rule", "spring", "_autumn"), quick(1, ZONES))
def test_each_due_time_runs_once_when_the_bridge_is_killed_around_it_and_the_clocks_change(
    tmp_path: Path, rule: str, spring: list[str], _autumn: list[str]
) -> None:
    with world_at(tmp_path, f"{spring[0][:11]}00:00+00:00") as world:
        world.command("t1", f'schedule "{rule}" say tick')
        world.settle()
        first, gap, after = spring

        # Before and right after the commit that makes the run, and when it is decided on.
        world.bridge.arm("schedules.begin", "before")
        reach(world, first, due=[first])
        world.bridge.arm("commit", "after")
        reach(world, gap, due=[first, gap])
        world.bridge.arm("decisions.accept", "after")
        reach(world, after, due=[first, gap, after])

    assert world.deaths == 3
    assert [post.text for post in world.turns("t1")] == ["tick"] * 3
    assert announced(world) == [f"Schedule 1 by Ann ({rule}): say tick"] * 3


@pytest.mark.long
@pytest.mark.parametrize(("rule", "spring", "autumn"), quick(1, ZONES))
def test_what_was_due_in_days_of_downtime_is_made_up_for_by_one_run(
    tmp_path: Path, rule: str, spring: list[str], autumn: list[str]
) -> None:
    first = datetime.fromisoformat(spring[-1])
    with world_at(tmp_path, str(first - timedelta(hours=1))) as world:
        world.command("t1", f'schedule "{rule}" say tick')
        world.settle()
        world.end()

        # Three days later: this time, and the same of the two days before it, have passed.
        late = str(first + timedelta(days=2))
        world.bridge.set_clock(str(first + timedelta(days=2, hours=9)))
        world.bridge.start()
        reach(world, str(first + timedelta(days=2, hours=9)), due=[late])
        assert announced(world) == [
            f"Schedule 1 by Ann ({rule}): say tick\n"
            "3 runs were missed while the bridge was not running; this run makes up for them."
        ]

        # Months later, around the hour that comes twice.
        world.bridge.kill()
        world.bridge.set_clock(str(datetime.fromisoformat(autumn[0]) - timedelta(minutes=30)))
        world.revive()
        wait_for_runs(world, 2)
        assert "runs were missed" in announced(world)[-1]
        world.bridge.set_clock(autumn[0])
        wait_for_runs(world, 3)
        [(due,)] = world.bridge.rows("select due_at from schedule")
        [listed] = json.loads(run(world, "schedules", "list", "--json"))

    assert runs(world)[-1] == (name(autumn[0]), "done")
    assert due == datetime.fromisoformat(autumn[1]).timestamp()
    assert (listed["words"], listed["next"]) == ("say tick", due)
    assert [post.text for post in world.turns("t1")] == ["tick"] * 3


def test_a_schedule_runs_in_a_slack_thread_that_it_began(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} schedule \u201c0 9 * * 1-5\u201d say tick")
        world.wait_answer(thread, "Schedule 1 for claude: say tick")
        world.say(f"{world.at('claude')} schedule run 1", thread=thread, who=world.bob)

        # The words of the schedule are quoted before they are answered.
        world.wait(lambda: world.answers(thread)[-1].words == "tick")
        world.settle()

        said = [message.words for message in world.answers(thread)]
        [(prompt,)] = world.bridge.rows("select prompt from turn")
    assert said[1:3] == ["Schedule 1 runs now.", said[2]]
    assert said[2].startswith("Schedule 1 by Ann (0 9 * * 1-5 ")
    assert said[3] == "tick"
    assert "could not be read" not in prompt


@pytest.mark.long
def test_a_schedule_runs_on_an_issue_on_github(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        world.github.comment("ann", issue, '@claude-bridge schedule "0 9 * * 1-5" say tick')
        world.wait_for(issue, "Schedule 1 for")
        world.github.comment("ann", issue, "@claude-bridge schedule run 1")

        world.wait_for(issue, "Schedule 1 by ann")
        world.bridge.wait(lambda: world.turns() == 1, "the run began no turn")
        world.settled()

        assert [each.body for each in world.visible(issue)][-1].startswith("@ann\n\ntick")
        assert world.turns() == 1


def test_a_schedule_runs_in_a_session_on_linear(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign("say begun")
        world.wait_end(session)
        world.linear.reply(session, world.ann, 'schedule "0 9 * * 1-5" say tick')
        world.linear.wait(lambda: "Schedule 1 for" in str(session.activities))
        world.linear.reply(session, world.ann, "schedule run 1")

        world.linear.wait(lambda: session.of_type("response")[-1].body == "tick")

        assert "Schedule 1 by Ann" in str(session.activities)
        assert world.linear.faults == []
