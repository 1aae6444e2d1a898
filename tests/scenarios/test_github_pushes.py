"""Whole stories of pushes that the simulated GitHub refuses, with real git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.github import PullWorld

WORKFLOW = "run mkdir -p .github/workflows && echo on > .github/workflows/ci.yml"


@pytest.mark.long
def test_workflow_files_are_pushed_only_by_an_app_with_the_permission_and_after_a_person_said_yes(
    tmp_path: Path,
) -> None:
    with PullWorld(tmp_path) as world:
        issue = world.issue("Please add it.", "Add a workflow")

        world.github.comment("ann", issue, f"@claude-bridge\n{WORKFLOW}")
        world.allow()
        answer = world.wait_for(issue, "Not pushed")
        world.settled()
        assert "`Workflows: Read and write`" in answer.body
        assert ".github/workflows/ci.yml" in answer.body
        asked = "select count(*) from ask"
        assert world.bridge.rows(asked) == [(1,)], "what cannot be done is not asked"
        assert world.pulls() == []

        world.apps["claude"].permissions["workflows"] = "write"
        world.github.comment("ann", issue, "@claude-bridge\nsay again")
        assert world.allow().startswith("Push changes to workflow files")
        pull = world.opened()
        world.settled()
        assert pull.pull is not None
        assert world.file(pull.pull.head, ".github/workflows/ci.yml") == "on"
        world.github.comment("ann", issue, "@claude-bridge\nwrite greeting.txt hello")
        world.allow()
        world.github.wait(lambda: world.file(pull.pull.head, "greeting.txt") == "hello")  # type: ignore[union-attr]  # it has one

        world.settled()
        wide = [each for each in world.github.tokens.values() if "workflows" in each.permissions]
        assert len(wide) == 1, "other pushes get none of it"


@pytest.mark.slow
def test_where_commits_must_be_signed_people_are_told_what_to_change(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        world.repository.signed = True
        issue = world.issue("Please add it.", "Add a greeting")

        world.github.comment("ann", issue, "@claude-bridge\nwrite greeting.txt hello")
        world.allow()
        answer = world.wait_for(issue, "Not pushed")

        world.settled()
        assert "takes only signed commits" in answer.body
        assert "`agent/`" in answer.body
        assert "GH013" not in answer.body
