"""Words to a working agent where people talk: what they see, and what a hand-over leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge import BridgeProcess
from tests.support.github import GithubWorld, PullWorld
from tests.support.hook import message
from tests.support.linear import LinearWorld
from tests.support.observe import Observed, demo
from tests.support.platform import Platform

STEERED: dict[str, Any] = {"while_busy": "steer"}
BOT = "claude-bridge[bot]"
TAKEN = "I have your message and go on with it."
STATES = "select heard.steered from heard order by heard.message"


def states(bridge: BridgeProcess) -> list[str | None]:
    """List where each message is, in order."""
    return [state for (state,) in bridge.rows(STATES)]


def in_workspaces(bridge: BridgeProcess, name: str) -> list[Path]:
    """Find a file that an agent made in any workspace."""
    return list(bridge.data_dir.glob(f"workspaces/*/{name}"))


def let_go(bridge: BridgeProcess, begun: str, name: str) -> None:
    """Make the file that a turn holds for, where it told that it had begun."""
    (there,) = in_workspaces(bridge, begun)
    there.with_name(name).touch()


def test_a_comment_that_is_taken_gets_the_eyes_and_then_the_sign_of_the_answer(
    tmp_path: Path,
) -> None:
    with GithubWorld(tmp_path, entry=STEERED) as world:
        issue = world.issue("Something is wrong.")
        first = world.github.comment("ann", issue, "@claude-bridge\ntell begun\nhold go")
        world.bridge.wait(lambda: bool(in_workspaces(world.bridge, "begun")), "it does not begin")

        second = world.github.comment("ann", issue, "@claude-bridge\nsay the second thing")
        world.github.wait(lambda: second.reactions == [(BOT, "eyes")])
        seen_at_work = list(first.reactions)
        let_go(world.bridge, "begun", "go")
        world.wait_for(issue, "the second thing")
        world.github.wait(lambda: (BOT, "+1") in second.reactions)
        world.settled()

        assert seen_at_work == [(BOT, "eyes")]
        assert first.reactions == second.reactions == [(BOT, "eyes"), (BOT, "+1")]
        assert world.turns() == 1


def test_words_that_wait_on_github_are_not_marked_as_taken(tmp_path: Path) -> None:
    with GithubWorld(tmp_path, entry={"while_busy": "queue"}) as world:
        issue = world.issue("Something is wrong.")
        world.github.comment("ann", issue, "@claude-bridge\ntell begun\nhold go")
        world.bridge.wait(lambda: bool(in_workspaces(world.bridge, "begun")), "it does not begin")

        second = world.github.comment("ann", issue, "@claude-bridge\nsay the second thing")
        world.bridge.wait(lambda: len(states(world.bridge)) == 2, "it was not heard")
        let_go(world.bridge, "begun", "go")
        world.wait_for(issue, "the second thing")
        world.settled()

        assert states(world.bridge) == [None, None]
        assert [each for _, each in second.reactions] == ["eyes", "+1"]
        assert world.turns() == 2


def test_words_that_an_agent_on_linear_has_are_confirmed_by_a_thought(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, entry=STEERED) as world:
        session = world.assign("tell begun\nhold go")
        world.bridge.wait(lambda: bool(in_workspaces(world.bridge, "begun")), "it does not begin")

        world.linear.reply(session, world.ann, "say the second thing")
        world.linear.wait(lambda: TAKEN in [each.body for each in session.of_type("thought")])
        let_go(world.bridge, "begun", "go")
        world.wait_end(session)

        thoughts = [each for each in session.of_type("thought") if each.body == TAKEN]
        assert [each.ephemeral for each in thoughts] == [False]
        assert session.response.endswith("the second thing")
        assert world.turns() == 1
        assert world.linear.faults == []


def test_a_hand_over_leaves_the_words_to_the_agent_that_has_them(tmp_path: Path) -> None:
    agents = {"demo": demo(**STEERED), "other": demo(**STEERED)}
    with Platform() as platform, Observed(tmp_path, platform, agents) as bridge:
        number = bridge.begin("t1", "tell begun\nhold go")
        bridge.held("t1", "begun")
        assert bridge.say("t1", "say the steered words", "demo") == 200
        bridge.wait(lambda: states(bridge) == [None, "taken"], "not taken")

        told = bridge.told("t1", "agent other", "demo")
        following = message("t1", "say the words of the next one")
        assert bridge.deliver(following, agent="other") == 200
        other = bridge.end("t1", 0, "other")
        bridge.release("t1", "go")
        mine = bridge.end("t1", number)

    assert "other" in told
    assert mine["state"] == other["state"] == "done"
    assert mine["text"].endswith("the steered words")
    assert "the words of the next one" not in mine["text"]
    assert other["text"].endswith("the words of the next one")
    assert states(bridge) == [None, "read", None]


@pytest.mark.long
def test_words_on_another_surface_of_the_session_wait_for_an_answer_there(tmp_path: Path) -> None:
    with PullWorld(tmp_path, entry={**STEERED, "mode": "free"}) as world:
        issue = world.issue("Something is wrong.")
        world.github.comment("ann", issue, "@claude-bridge\nwrite new.py print()")
        pull = world.opened()
        world.settled()
        world.github.comment("ann", issue, "@claude-bridge\ntell begun\nhold go")
        world.bridge.wait(lambda: bool(in_workspaces(world.bridge, "begun")), "it does not begin")

        here = world.github.comment("ann", issue, "@claude-bridge\nsay for the issue")
        world.github.wait(lambda: here.reactions == [(BOT, "eyes")])
        there = world.github.comment("ann", pull, "@claude-bridge\nsay for the pull request")
        world.bridge.wait(lambda: len(states(world.bridge)) == 4, "it was not heard")
        let_go(world.bridge, "begun", "go")
        on_issue = world.wait_for(issue, "for the issue")
        on_pull = world.wait_for(pull, "for the pull request")
        world.settled()

        assert states(world.bridge) == [None, None, "read", None]
        assert "for the pull request" not in on_issue.body
        assert "for the issue" not in on_pull.body
        assert (BOT, "+1") in there.reactions
        assert world.bridge.rows("select count(*) from session") == [(1,)]
