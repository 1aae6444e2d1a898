"""A tree of sub-agents: told in every place, stopped with its turn, settled after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.model.subagents import BELOW
from tests.support.github import GithubWorld
from tests.support.linear import LinearWorld
from tests.support.slack import SlackWorld
from tests.support.world import World

pytestmark = pytest.mark.one_database

TREE = (
    "subagent explore say Looking. && subagent reviewer say Reading. && "
    "subagent linter run echo linted\n"
    "subagent tester say Tested.\n"
    "say All are at work."
)
ASKER = BELOW.join(("claude", "explore", "reviewer", "linter"))


def states(world: World) -> dict[str, str]:
    """Tell the state of each sub-agent by its name."""
    return dict(world.bridge.rows("select title, state from subagent order by id"))


def test_a_stop_of_the_turn_ends_sub_agents_that_the_agent_spares(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "subagent outer tell here && subagent inner hold never\nhold never")
        world.bridge.wait(lambda: states(world).get("inner") == "working", "not begun")
        world.command("t1", "stop")
        world.settle()
        world.bridge.wait(
            lambda: states(world) == {"outer": "stopped", "inner": "stopped"}, "not stopped"
        )
        world.end()


def test_after_a_kill_sub_agents_are_lost_and_the_tree_stays(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "subagent done say Over.\nsubagent cut hold go")
        world.bridge.wait(
            lambda: states(world) == {"done": "done", "cut": "working"}, "not at work"
        )
        world.kill()
        world.revive()
        world.bridge.wait(lambda: states(world)["cut"] == "lost", "not settled")
        world.touch("go")
        world.settle()
        world.end()

        # The turn that goes on starts them again: others, with names of their own.
        rows = world.bridge.rows("select title, state from subagent order by id")
        assert rows[:2] == [("done", "done"), ("cut", "lost")]
        assert {state for _, state in rows[2:]} <= {"done"}


def test_a_question_that_the_agent_takes_back_says_so_and_takes_no_answer(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.say("t1", "tell here\nwithdraw go")
        world.wait_file("here")
        world.bridge.wait(
            lambda: world.bridge.rows("select state from ask") == [("open",)], "not asked"
        )
        world.touch("go")
        world.bridge.wait(
            lambda: world.bridge.rows("select state from ask") == [("withdrawn",)], "not withdrawn"
        )
        world.settle()

        world.answer(1, "allow")
        told = "select count(*) from delivery where reason like '%the agent took this back%'"
        world.bridge.wait(lambda: world.bridge.rows(told) == [(1,)], "not told")
        (turn,) = world.turns()
        assert "Never mind." in turn.text
        world.end()


def test_on_slack_each_has_a_line_and_what_one_asks_names_it(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} {TREE}")
        asked = world.wait_button(thread, "Allow once")
        assert f"{ASKER} wants to run" in asked.words
        world.slack.click(world.ann, asked.ts, "Allow once")
        answer = world.wait_answer(thread, "All are at work.")

        assert "Sub-agent linter: run echo linted · done" in answer.words
        assert "Sub-agent tester: say Tested. · done" in answer.words
        assert world.turns() == 1


def test_on_github_they_are_folded_into_the_answer(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        world.github.comment("ann", issue, f"@claude-bridge\n{TREE}")
        world.wait_for(issue, f"{ASKER} wants to run")
        world.github.comment("ann", issue, "@claude-bridge yes")
        world.settled()

        answer = world.visible(issue)[-1]
        said, _, fold = answer.body.partition("<details>")
        assert "All are at work." in said
        assert "Sub-agent" not in said
        assert "Sub-agent linter" in fold
        assert "Sub-agent tester" in fold


def test_on_linear_each_is_an_action(tmp_path: Path) -> None:
    with LinearWorld(tmp_path) as world:
        session = world.assign(*TREE.splitlines())
        world.wait_status(session, "awaitingInput")
        world.linear.pick(session, world.ann, "Allow once")
        world.wait_end(session)

        shown = [each.content["action"] for each in session.of_type("action")]
        assert {f"Sub-agent {name}" for name in ("explore", "reviewer", "linter", "tester")} <= set(
            shown
        )
