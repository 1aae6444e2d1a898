"""Schedules in a real bridge on a driven clock: time changes, kill -9, days of downtime."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.variants import quick
from tests.support.world import World

SPEED = 100.0
"""Of the clock: a bridge that sleeps for a minute looks at the time again after 0.6 seconds."""
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


def reach(world: World, moment: str, *, due: list[str]) -> None:
    """Let it be a time, and wait until these runs, and no others, have ended."""
    world.bridge.set_clock(moment)
    wanted = [(name(each), "done") for each in due]
    world.settle(lambda: len(runs(world)) >= len(wanted))
    assert runs(world) == wanted


def announced(world: World) -> list[str]:
    """List what the place was told when runs began."""
    posts = world.platform.shown("notice")
    return [post.note for post in posts if post.note.startswith("Schedule 1 by")]


@pytest.mark.parametrize(("rule", "spring", "autumn"), quick(1, ZONES))
def test_each_due_time_runs_once_over_kills_downtime_and_changes_of_the_clocks(
    tmp_path: Path, rule: str, spring: list[str], autumn: list[str]
) -> None:
    began = f"{spring[0][:11]}00:00+00:00"
    with world_at(tmp_path, began) as world:
        world.command("t1", f'schedule "{rule}" say tick')
        world.settle()
        first, gap, after = spring

        # Killed before and after the commit that makes the run.
        world.bridge.arm("schedules.begin", "before")
        reach(world, first, due=[first])
        world.bridge.arm("schedules.begin", "after")
        reach(world, gap, due=[first, gap])
        # Killed when it has decided on the run.
        world.bridge.arm("decisions.accept", "after")
        reach(world, after, due=[first, gap, after])
        assert world.deaths == 3

        # Three days of downtime: two times are skipped, one run makes up for all three.
        world.end()
        late = after.replace("03-30", "04-02").replace("03-09", "03-12")
        hour_later = late.replace("T0", "T1")
        world.bridge.set_clock(hour_later)
        world.bridge.start()
        done = [first, gap, after, late]
        reach(world, hour_later, due=done)
        assert announced(world)[-1].splitlines() == [
            f"Schedule 1 by Ann ({rule}): say tick",
            "3 runs were missed while the bridge was not running; this run makes up for them.",
        ]

        # Months later, around the hour that comes twice.
        before = str(datetime.fromisoformat(autumn[0]).replace(minute=0)).replace(" ", "T")
        world.bridge.kill()
        world.bridge.set_clock(before)
        world.revive()
        world.settle(lambda: len(runs(world)) == 5)
        done.append(runs(world)[-1][0])
        assert "runs were missed" in announced(world)[-1]
        world.bridge.set_clock(autumn[0])
        world.settle(lambda: len(runs(world)) == 6)
        [(due,)] = world.bridge.rows("select due_at from schedule")

    assert runs(world)[-1] == (name(autumn[0]), "done")
    assert due == datetime.fromisoformat(autumn[1]).timestamp()
    assert len({run for run, _ in runs(world)}) == 6
    assert all(post.text == "tick" for post in world.turns("t1"))
    assert len(world.turns("t1")) == len(announced(world)) == 6
