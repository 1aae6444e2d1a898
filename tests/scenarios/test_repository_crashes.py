"""Kill -9 at every step of opening a clone and of shipping: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from tests.support.fleet import Fleet
from tests.support.git_server import git
from tests.support.invariants import violations
from tests.support.postgres import need_server
from tests.support.studio import BRANCH, REPOSITORY, Studio, pull_of, studio
from tests.support.variants import quick

Point = tuple[str, Literal["before", "after"]]

MIRRORING: list[Point] = [
    ("git.init", "before"),
    ("git.init", "after"),
    ("git.fetch", "before"),
    ("git.fetch", "after"),
    ("git.ls-remote", "after"),
    ("git.symbolic-ref", "after"),
]
OPENING: list[Point] = [
    ("checkouts.begin", "before"),
    ("checkouts.begin", "after"),
    ("git.update-ref", "after"),
    ("clone.clone", "before"),
    ("clone.clone", "after"),
    ("clone.checkout", "before"),
    ("clone.checkout", "after"),
    ("git.cat-file", "before"),
    ("checkouts.ready", "before"),
    ("checkouts.ready", "after"),
]
SHIPPING: list[Point] = [
    ("clone.status", "before"),
    ("clone.add", "before"),
    ("clone.add", "after"),
    ("clone.commit", "before"),
    ("clone.commit", "after"),
    ("clone.push", "before"),
    ("git.rev-list", "before"),
    ("git.log", "after"),
    ("git.push", "before"),
    ("git.push", "after"),
    ("checkouts.sent", "before"),
    ("checkouts.sent", "after"),
    ("clone.push", "after"),
    ("forge.propose", "before"),
    ("forge.propose", "after"),
    ("checkouts.told", "before"),
    ("checkouts.told", "after"),
    ("turns.finish", "before"),
    ("turns.finish", "after"),
]
PARTS = 4
"""Into which the steps at which a member of a fleet dies are divided."""
# One of each kind; the whole list takes minutes.
SOME: list[Point] = [
    ("git.fetch", "after"),
    ("clone.clone", "after"),
    ("clone.commit", "after"),
    ("git.push", "after"),
    ("forge.propose", "after"),
    ("checkouts.told", "after"),
]


def survives(here: Studio, point: Point, place: str = "t1") -> None:
    """Let a bridge die at a step of the first turn of a place, and see that all comes right."""
    deaths, pulls = here.world.deaths, len(here.proposals)
    branch = BRANCH.replace("t1", place)
    here.world.bridge.arm(*point)
    here.world.say(place, "write one.txt 1")
    here.world.settle(lambda: here.world.deaths == deaths + 1)
    here.tell("write two.txt 2", place)

    assert [post.state for post in here.world.turns(place)] == ["done", "done"]
    (pull,) = here.proposals[pulls:]
    assert here.branches()[pulls:] == [branch]
    assert [here.show(name, branch) for name in ("one.txt", "two.txt")] == ["1", "2"]
    assert git(here.server.path(REPOSITORY), "rev-list", "--count", f"main..{branch}") == "2"
    links = [pull_of(post) for post in here.world.turns(place)]
    assert links == [pull["link"], pull["link"]]


@pytest.mark.long
@pytest.mark.parametrize("point", quick(1, {" ".join(point): (point,) for point in SOME}))
def test_a_crash_while_opening_or_shipping_is_repaired(tmp_path: Path, point: Point) -> None:
    with studio(tmp_path) as here:
        survives(here, point)


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [point for point in (*MIRRORING, *OPENING, *SHIPPING) if point not in SOME],
    ids=lambda point: " ".join(point),
)
def test_a_crash_at_every_other_step_is_repaired(tmp_path: Path, point: Point) -> None:
    with studio(tmp_path) as here:
        survives(here, point)


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [("git.fetch", "after"), ("git.ls-tree", "after"), ("git.rev-list", "after")],
    ids=lambda point: " ".join(point),
)
def test_a_crash_while_a_partial_repository_is_opened_is_repaired(
    tmp_path: Path, point: Point
) -> None:
    settings = {"REPOSITORIES_JSON": json.dumps({REPOSITORY: {"clone": "partial"}})}
    with studio(tmp_path, settings=settings) as here:
        survives(here, point)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_worker_may_die_at_any_step_and_another_one_opens_no_second_pull_request(
    tmp_path: Path, part: int
) -> None:
    need_server()
    entry = {"driver": "demo", "sandbox": "none"}
    with studio(tmp_path, entry=entry, world=partial(Fleet, fronts=1, patient=True)) as here:
        for number, point in enumerate([*OPENING, *SHIPPING][part::PARTS]):
            survives(here, point, f"t{number}")
        here.world.end()

        assert violations(here.world) == []
