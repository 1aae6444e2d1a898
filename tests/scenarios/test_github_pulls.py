"""Whole stories with real git on the simulated GitHub: branch, push, pull request, review."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.github import PullWorld


def test_an_issue_becomes_a_pull_request_whose_review_goes_on_with_the_same_session(
    tmp_path: Path,
) -> None:
    with PullWorld(tmp_path) as world:
        issue = world.issue("Please add it.", "Add a greeting")

        world.github.comment("ann", issue, "@claude-bridge\nwrite greeting.txt hello")
        world.allow()
        pull = world.opened()
        world.settled()
        assert pull.pull is not None
        assert pull.user is world.apps["claude"].bot
        assert world.file(pull.pull.head, "greeting.txt") == "hello"
        assert world.wait_for(issue, f"/pull/{pull.number}")

        first = pull.pull.sha
        world.github.review("ann", pull, None, ("greeting.txt", 1, "write greeting.txt good day"))
        world.allow()
        world.bridge.wait(lambda: pull.pull is not None and pull.pull.sha != first, "no new commit")
        world.settled()

        assert world.file(pull.pull.head, "greeting.txt") == "good day"
        assert world.bridge.rows("select count(*) from session") == [(1,)]
        assert [each.pull is not None for each in world.repository.issues.values()] == [False, True]


@pytest.mark.long
def test_a_pull_request_from_a_fork_is_looked_at_and_nothing_can_be_pushed(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        fork = world.github.fork(world.repository, "mallory")
        world.github.git.commit(fork.full_name, "theirs", {"theirs.txt": "theirs"}, "Change")
        pull = world.github.open_pull("mallory", world.repository, "Mine", "mallory:theirs")

        world.github.comment("ann", pull, "@claude-bridge\nwrite more.txt hello")
        world.allow()
        world.wait_for(pull, "more.txt")
        world.settled()

        (clone,) = (world.bridge.data_dir / "workspaces").glob("**/theirs.txt")
        assert clone.read_text() == "theirs"
        assert list(world.github.git.branches(world.repository.full_name)) == ["main"]
        assert list(world.github.git.branches(fork.full_name)) == ["main", "theirs"]


@pytest.mark.slow
def test_a_pull_request_of_a_person_is_worked_on_in_its_own_branch(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        pull = world.pull()

        world.github.comment("ann", pull, "@claude-bridge\nwrite more.txt hello")
        world.allow()
        world.bridge.wait(lambda: world.file("topic", "more.txt") == "hello", "not pushed")
        world.settled()

        assert len(world.repository.issues) == 1
