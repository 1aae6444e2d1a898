"""Whole stories of turns that are checks with buttons on the simulated GitHub."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.github.state import Check
from tests.support.github import GithubWorld, PullWorld


def shown(world: GithubWorld, title: str) -> Check:
    """Wait until the last check says something; returns it."""

    def found() -> bool:
        checks = world.repository.checks
        return bool(checks) and checks[-1].output.get("title") == title

    world.github.wait(found)
    return world.repository.checks[-1]


@pytest.mark.long
def test_a_permission_is_given_by_a_button_of_whoever_may(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.pull()
        assert pull.pull is not None
        sha = pull.pull.sha
        world.github.comment("ann", pull, "@claude-bridge\nwrite a.txt hello")

        asking = shown(world, "An answer is needed")
        labels = [each["label"] for each in asking.buttons]
        assert labels == ["Allow once", "Always exactly this", "Reject"]
        assert (asking.sha, asking.name) == (sha, "claude-bridge")
        world.github.press("tim", world.repository, asking, "Allow once")
        world.wait_for(pull, "This does not count: write access")
        world.github.press("ann", world.repository, asking, "Allow once")
        done = shown(world, "Done")

        world.settled()
        assert world.bridge.rows("select state, answered_by from ask") == [("answered", "ann")]
        assert world.bridge.rows("select state from turn") == [("done",)]
        first, last = world.repository.checks
        assert (first, last) == (asking, done), "what was completed stays so"
        assert (last.name, last.conclusion, last.actions) == (first.name, "success", [])
        assert (first.status, first.conclusion) == ("completed", "neutral")


@pytest.mark.slow
def test_a_turn_for_an_issue_is_a_check_of_the_pull_request_that_came_of_it(
    tmp_path: Path,
) -> None:
    with PullWorld(tmp_path) as world:
        issue = world.issue("Please add it.", "Add a greeting")
        world.github.comment("ann", issue, "@claude-bridge\nwrite greeting.txt hello")
        world.allow()
        pull = world.opened()
        world.settled()
        assert pull.pull is not None
        sha = pull.pull.sha
        assert world.repository.checks == []

        world.github.comment("ann", issue, "@claude-bridge\nwrite greeting.txt good day")
        check = shown(world, "An answer is needed")
        assert check.sha == sha
        world.github.press("ann", world.repository, check, "Allow once")
        shown(world, "Done")
        world.settled()

        assert world.file(pull.pull.head, "greeting.txt") == "good day"


@pytest.mark.long
def test_a_turn_is_stopped_as_its_check_says_also_after_a_restart(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.pull()
        world.github.comment("ann", pull, "@claude-bridge\nhold never")
        check = shown(world, "Working")
        assert "Reply `@claude-bridge stop`" in check.output["summary"]
        assert check.actions == []
        prompted = "select cuts from turn where state = 'prompted'"
        world.bridge.wait(lambda: world.bridge.rows(prompted) == [(0,)], "no turn")
        world.bridge.kill()
        world.bridge.start()
        world.bridge.wait(lambda: world.bridge.rows(prompted) == [(1,)], "it did not go on")

        world.github.comment("rae", pull, "@claude-bridge stop")
        world.wait_for(pull, "did not act: write access")
        assert check.status == "in_progress"
        world.github.comment("bob", pull, "@claude-bridge stop")
        shown(world, "Stopped")

        world.settled()
        assert world.bridge.rows("select state from turn") == [("cancelled",)]
        assert (check.status, check.conclusion) == ("completed", "neutral")


@pytest.mark.long
def test_a_question_can_be_answered_by_stop_where_there_is_room_for_the_button(
    tmp_path: Path,
) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.pull()
        world.github.comment("ann", pull, "@claude-bridge\nask Sure? | Yes")
        asking = shown(world, "An answer is needed")

        world.github.press("ann", world.repository, asking, "Stop")
        shown(world, "Stopped")

        world.settled()
        assert world.bridge.rows("select state from turn") == [("cancelled",)]
        assert {each.status for each in world.repository.checks} == {"completed"}


@pytest.mark.long
def test_checks_that_are_to_run_again_are_answered_and_start_nothing(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.pull()
        world.github.comment("ann", pull, "@claude-bridge\nsay all is well")
        check = shown(world, "Done")
        world.settled()

        world.github.rerun("ann", world.repository, check)
        world.github.wait(lambda: not world.repository.suites)
        world.github.rerun_all("ann", world.repository, world.apps["claude"], check.sha)
        world.github.wait(lambda: not world.repository.suites)

        world.settled()
        last = world.repository.checks[-1]
        assert (last.name, last.conclusion) == ("claude-bridge", "neutral")
        assert last.output["title"] == "Nothing to run again"
        assert world.turns() == 1


@pytest.mark.slow
def test_where_the_app_may_not_write_checks_all_else_goes_on(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        world.apps["claude"].permissions["checks"] = "read"
        pull, issue = world.pull(), world.issue()

        for place in (pull, issue):
            world.github.comment("ann", place, "@claude-bridge\nsay all is well")
            world.wait_for(place, "all is well")

        world.settled()
        assert world.repository.checks == []
        tried = [each for each in world.github.calls if "check-runs" in each.path]
        assert tried == []
