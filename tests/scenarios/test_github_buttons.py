"""Whole stories of turns that are checks with buttons on the simulated GitHub."""

from __future__ import annotations

from pathlib import Path

from tests.sim.github.state import Check
from tests.support.github import GithubWorld, PullWorld


def shown(world: GithubWorld, conclusion: str | None) -> Check:
    """Wait until the last check stands as wanted; None: it runs."""

    def found() -> bool:
        checks = world.repository.checks
        return bool(checks) and checks[-1].conclusion == conclusion

    world.github.wait(found)
    return world.repository.checks[-1]


def test_a_permission_is_given_by_a_button_of_whoever_may(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.pull()
        assert pull.pull is not None
        sha = pull.pull.sha
        world.github.comment("ann", pull, "@claude-bridge\nwrite a.txt hello")

        check = shown(world, "action_required")
        assert [each["label"] for each in check.actions] == ["Allow once", "Allow always", "Reject"]
        assert (check.sha, check.name) == (sha, "claude-bridge")
        world.github.press("tim", world.repository, check, "Allow once")
        world.wait_for(pull, "This does not count: write access")
        assert check.conclusion == "action_required"
        world.github.press("ann", world.repository, check, "Allow once")
        shown(world, "success")

        world.settled()
        assert world.bridge.rows("select state, answered_by from ask") == [("answered", "ann")]
        assert world.bridge.rows("select state from turn") == [("done",)]
        assert (check.status, check.actions, len(world.repository.checks)) == ("completed", [], 1)


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
        check = shown(world, "action_required")
        assert check.sha == sha
        world.github.press("ann", world.repository, check, "Allow once")
        shown(world, "success")
        world.settled()

        assert world.file(pull.pull.head, "greeting.txt") == "good day"


def test_a_turn_is_stopped_by_a_button_also_after_a_restart(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.pull()
        world.github.comment("ann", pull, "@claude-bridge\nhold never")
        check = shown(world, None)
        prompted = "select cuts from turn where state = 'prompted'"
        world.bridge.wait(lambda: world.bridge.rows(prompted) == [(0,)], "no turn")
        world.bridge.kill()
        world.bridge.start()
        world.bridge.wait(lambda: world.bridge.rows(prompted) == [(1,)], "it did not go on")

        world.github.press("rae", world.repository, check, "Stop")
        world.wait_for(pull, "did not act: write access")
        assert check.status == "in_progress"
        world.github.press("bob", world.repository, check, "Stop")
        shown(world, "neutral")

        world.settled()
        assert world.bridge.rows("select state from turn") == [("cancelled",)]
        assert check.output["title"] == "Stopped"


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
