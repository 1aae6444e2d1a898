"""Whole stories of what people on the simulated GitHub are told, and of what stays to be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.github.state import Issue
from tests.support.github import GithubWorld

pytestmark = pytest.mark.one_database


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GithubWorld]:
    """Share one world, in which ten minutes take three seconds."""
    with GithubWorld(tmp_path_factory.mktemp("notices"), speed=200) as made:
        yield made


def told(world: GithubWorld, issue: Issue, login: str = "ann") -> list[tuple[str, str]]:
    """List what a person was told of what the agent said: the reason, and the first words."""
    said = {each.body for each in world.answers(issue)}
    marks = {each.rpartition("<!--")[2] for each in said}
    return [
        (each.reason, each.words.partition("\n")[0])
        for each in world.github.notifications
        if each.login == login and each.words.rpartition("<!--")[2] in marks
    ]


def test_a_turn_of_ten_seconds_is_one_comment_and_one_notification(tmp_path: Path) -> None:
    with GithubWorld(tmp_path, speed=3) as world:
        issue = world.issue()

        said = world.github.comment("ann", issue, "@claude-bridge\nslow 1")
        world.github.wait(lambda: ("claude-bridge[bot]", "+1") in said.reactions)

        world.settled()
        (answer,) = world.answers(issue)
        assert told(world, issue) == [("mention", "@ann")]
        assert (answer.edits, answer.minimized) == (0, "")
        assert [each for _, each in said.reactions] == ["eyes", "+1"]


@pytest.mark.long
def test_a_turn_of_ten_minutes_is_one_visible_answer_that_names_the_asker(
    world: GithubWorld,
) -> None:
    issue = world.issue()

    said = world.github.comment("ann", issue, "@claude-bridge\nslow 3")
    world.github.wait(lambda: ("claude-bridge[bot]", "+1") in said.reactions)

    world.settled()
    (answer,) = world.visible(issue)
    progress, last = world.answers(issue)
    assert (progress.minimized, last) == ("OUTDATED", answer)
    (reason, first), named = told(world, issue)
    assert (reason, named) == ("subscribed", ("mention", "@ann"))
    assert "**" in first, "it says at least what the agent is doing"
    assert answer.edits == 0


@pytest.mark.long
def test_a_silent_agent_is_shown_after_a_while_and_its_asker_need_not_have_commented(
    world: GithubWorld,
) -> None:
    issue = world.issue(by="rae")

    world.github.label("ann", issue, "agent:claude")
    world.wait_for(issue, "Handle this issue")
    world.settled()
    world.github.comment("ann", issue, "@claude-bridge\nhang")
    progress = world.progress(issue)
    assert "`@claude-bridge stop` stops it" in progress.body
    world.github.comment("bob", issue, "stop")
    world.github.wait(lambda: progress.minimized)

    world.settled()
    assert told(world, issue)[0] == ("mention", "@ann")
    assert "Stopped" in world.visible(issue)[-1].body


@pytest.mark.slow
def test_an_answer_after_a_crash_is_given_once_and_its_progress_is_hidden(
    tmp_path: Path,
) -> None:
    with GithubWorld(tmp_path, speed=200) as world:
        issue = world.issue()
        world.github.comment("ann", issue, "@claude-bridge\nslow 3")
        world.progress(issue)
        world.bridge.kill()
        world.github.fail("POST", r"/issues/1/comments$")
        world.bridge.start()
        world.github.wait(lambda: bool(world.answers(issue)[0].minimized))

        world.settled()
        assert len(world.answers(issue)) == 2
        assert [reason for reason, _ in told(world, issue)] == ["subscribed", "mention"]
