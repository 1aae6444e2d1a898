"""Whole stories of repositories that get another name, on the simulated GitHub with real git."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sim.github.hooks import Event
from sim.github.state import Issue
from tests.support.github import PullWorld


def proposed(world: PullWorld) -> Issue:
    """Let Claude open a pull request from an issue."""
    issue = world.issue("Please add it.", "Add a greeting")
    world.github.comment("ann", issue, "@claude-bridge\nwrite greeting.txt hello")
    world.allow()
    pull = world.opened()
    world.settled()
    return pull


def reviewed(world: PullWorld, pull: Issue, words: str) -> None:
    """Ask for a change by a review, and wait until it is pushed."""
    assert pull.pull is not None
    first = pull.pull.sha
    world.github.review("ann", pull, None, ("greeting.txt", 1, f"write greeting.txt {words}"))
    world.allow()
    world.bridge.wait(lambda: pull.pull is not None and pull.pull.sha != first, "no new commit")
    world.settled()


@pytest.mark.parametrize(
    ("owner", "name", "missed"),
    [
        pytest.param("acme", "gadgets", False, id="renamed", marks=pytest.mark.slow),
        pytest.param("other", "widgets", False, id="transferred", marks=pytest.mark.slow),
        pytest.param("acme", "gadgets", True, id="found out later", marks=pytest.mark.slow),
    ],
)
def test_a_session_goes_on_under_the_new_name_of_its_repository(
    tmp_path: Path, owner: str, name: str, missed: bool
) -> None:
    world = PullWorld(tmp_path, settings={"GITHUB_INSTALLATIONS__CLAUDE": "other"})
    world.github.account("other", "Organization")
    with world:
        pull = proposed(world)
        assert pull.pull is not None

        world.github.hooks.held = [] if missed else None
        world.github.rename(world.repository, owner, name)
        world.github.hooks.held = None
        world.settled()
        reviewed(world, pull, "good day")

        full = f"{owner}/{name}"
        branch = f"refs/heads/{pull.pull.head}:greeting.txt"
        assert world.github.git.git(full, "show", branch) == "good day"
        assert world.bridge.rows("select count(*) from session") == [(1,)]
        surfaces = world.bridge.rows("select external from surface order by id")
        assert surfaces == [(f"{full}:1",), (f"{full}:{pull.number}",)]
        assert world.bridge.rows("select name, number from checkout") == [(full, 1)]
        assert len(list((world.bridge.data_dir / "mirrors").glob("*.git"))) == 1


@pytest.mark.slow
def test_whoever_takes_the_old_name_is_a_stranger(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        pull = proposed(world)
        assert pull.pull is not None
        mine, people = world.repository, world.repository.people
        world.github.hooks.held = []
        world.github.rename(mine, "acme", "gadgets")
        world.github.hooks.held = None
        stranger = world.github.repository("acme/widgets", people, files={"theirs.txt": "theirs"})
        world.github.install(world.apps["claude"], stranger)

        issue = world.github.open_issue("ann", stranger, "Other", "@claude-bridge\nsay new here")
        world.wait_for(issue, "new here")
        world.settled()
        assert world.bridge.rows("select count(*) from session") == [(2,)]
        assert "greeting" not in world.prompts()[-1]

        reviewed(world, pull, "good day")
        assert world.bridge.rows("select count(*) from session") == [(2,)]
        branch = f"refs/heads/{pull.pull.head}:greeting.txt"
        assert world.github.git.git("acme/gadgets", "show", branch) == "good day"
        assert list(world.github.git.branches("acme/widgets")) == ["main"]
        of_old = world.bridge.rows("select session from surface where external like '%gadgets:%'")
        assert {row[0] for row in of_old} == {1}


@pytest.mark.slow
def test_an_event_from_before_the_rename_is_heard_under_the_new_name(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        issue = world.issue()
        world.github.comment("ann", issue, "@claude-bridge\nsay first")
        world.wait_for(issue, "first")
        world.settled()
        world.github.hooks.held = held = list[Event]()
        world.github.comment("ann", issue, "@claude-bridge\nsay second")
        world.github.hooks.held = None
        world.github.rename(world.repository, "acme", "gadgets")
        world.settled()

        (late,) = held
        assert world.github.hooks.deliver(late) == 200
        world.wait_for(issue, "second")
        world.settled()

        assert world.bridge.rows("select external from surface") == [("acme/gadgets:1",)]


@pytest.mark.slow
def test_what_is_set_for_a_repository_counts_under_its_new_name(tmp_path: Path) -> None:
    entry = {"env": {"GREETING": "hello from the settings"}}
    settings = {"REPOSITORIES_JSON": json.dumps({"acme/widgets": entry})}
    with PullWorld(tmp_path, settings=settings) as world:
        world.github.rename(world.repository, "acme", "gadgets")
        world.settled()

        issue = world.issue("@claude-bridge\nenv")

        world.wait_for(issue, "hello from the settings")
