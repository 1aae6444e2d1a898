"""Whole stories with real git on the simulated GitHub: one agent reviews the work of another."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.github.state import Comment, Issue, Review
from tests.support.github import PullWorld

REVIEW = """@codex-bridge please review this.
say Nearly.
say ```review
say greeting.txt:1: Say good day instead.
say README.md:1: Name it there too.
say ```"""


def proposed(world: PullWorld) -> Issue:
    """Let Claude open a pull request from an issue."""
    issue = world.issue("Please add it.", "Add a greeting")
    world.github.comment("ann", issue, "@claude-bridge\nwrite greeting.txt hello")
    world.allow()
    pull = world.opened()
    world.settled()
    return pull


def reviewed(world: PullWorld, pull: Issue) -> tuple[list[Review], list[Comment]]:
    """Let Codex review it."""
    assert pull.pull is not None
    world.github.comment("ann", pull, REVIEW)
    world.github.wait(lambda: pull.pull and pull.pull.reviews)
    world.settled()
    return pull.pull.reviews, pull.pull.comments


@pytest.mark.long
def test_codex_reviews_the_pull_request_of_claude_on_its_lines_and_can_push_nothing(
    tmp_path: Path,
) -> None:
    with PullWorld(tmp_path, agents=("claude", "codex")) as world:
        pull = proposed(world)
        assert pull.pull is not None
        branches = world.github.git.branches("acme/widgets")

        (review,), (remark,) = reviewed(world, pull)
        commands = (
            "git rev-parse HEAD",
            "git symbolic-ref --quiet HEAD || echo detached",
            "git commit --quiet --allow-empty -m mine && echo committed",
            f"git push origin HEAD:refs/heads/{pull.pull.head} || echo refused once",
            "git push origin HEAD:refs/heads/main || echo refused twice",
        )
        world.github.comment("ann", pull, f"@codex-bridge\nrun {'; '.join(commands)}")
        world.allow()
        answer = world.wait_for(pull, "ended with status", "codex")
        world.settled()

        assert review.user is remark.user is world.apps["codex"].bot
        assert review.commit == pull.pull.sha
        assert (remark.path, remark.line, remark.review) == ("greeting.txt", 1, review.id)
        assert "Say good day instead." in remark.body
        assert "Nearly." in (review.body or "")
        assert "`README.md:1`: Name it there too." in (review.body or "")
        _, _, output = answer.body.partition("ended with status")
        seen = (pull.pull.sha, "detached", "committed", "refused once", "refused twice")
        assert [words for words in seen if words not in output] == []
        assert world.github.git.branches("acme/widgets") == branches
        assert world.turns() == 3


@pytest.mark.slow
def test_claude_is_told_to_fix_what_codex_found_and_knows_it(tmp_path: Path) -> None:
    with PullWorld(tmp_path, agents=("claude", "codex")) as world:
        pull = proposed(world)
        assert pull.pull is not None
        reviewed(world, pull)
        assert world.turns() == 2, "an agent's review starts nobody"

        words = "@claude-bridge fix what Codex found\nwrite greeting.txt good day"
        world.github.comment("ann", pull, words)
        world.allow()
        world.bridge.wait(
            lambda: world.file(pull.pull.head if pull.pull else "", "greeting.txt") == "good day",
            "nothing was fixed",
        )
        world.settled()

        _, asked, told = world.prompts()
        assert "add a ```review block to your answer" in asked
        assert "for reading; you cannot push from it" in asked
        assert "codex: Nearly." in told
        assert "greeting.txt:1: Say good day instead." in told
        assert "```review block" not in told
        sessions = world.bridge.rows("select session from turn order by id")
        assert sessions[0] == sessions[2] != sessions[1]


@pytest.mark.slow
def test_a_review_that_waits_follows_its_author_piece_by_piece(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        pull = world.own_pull()
        world.github.comment("ann", pull, "@claude-bridge\nslow 300")
        prompted = "select count(*) from turn where state = 'prompted'"
        world.bridge.wait(lambda: world.bridge.rows(prompted) == [(1,)], "no turn")
        words = (("new.py", 1, "say one"), ("README.md", 4, "say two"))
        world.github.review("ann", pull, "Two things.", *words)
        world.github.review("ann", pull, None, ("new.py", 1, "say three"))
        assert pull.pull is not None
        first, second, third = pull.pull.comments
        heard = "select count(*) from message"
        world.bridge.wait(lambda: world.bridge.rows(heard) == [(3,)], "not heard")

        world.github.edit_comment("bob", pull, first, "say forged")
        world.github.edit_comment("ann", pull, first, "say better")
        world.github.delete_comment("cleo", pull, second)
        world.github.delete_comment("ann", pull, third)
        last = "select count(*) from delivery where reason = 'edited: dropped'"
        world.bridge.wait(lambda: world.bridge.rows(last) == [(1,)], "not followed")
        world.github.comment("ann", pull, "@claude-bridge queue now")
        world.wait_for(pull, "better")

        world.settled()
        told = world.prompts()[-1]
        assert "`new.py`, line 1:\nsay better" in told
        gone = ("say one", "say two", "say three", "say forged")
        assert [each for each in gone if each in told] == []
