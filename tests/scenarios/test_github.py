"""Whole stories on the simulated GitHub, with real bridges and demo agents."""

from __future__ import annotations

from pathlib import Path

from tests.support.github import GithubWorld


def test_a_mention_on_an_issue_leads_to_one_comment_that_ends_as_the_answer(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue("Something is wrong.")

        said = world.github.comment("ann", issue, "@claude-bridge\nsay all is well")
        answer = world.wait_for(issue, "all is well")

        world.settled()
        assert world.answers(issue) == [answer]
        assert said.reactions == [("claude-bridge[bot]", "eyes")]
        assert world.turns() == 1
