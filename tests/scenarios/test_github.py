"""Whole stories on the simulated GitHub, with real bridges and demo agents."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from sim.github.hooks import Event
from tests.support.github import GithubWorld


@pytest.mark.long
def test_a_mention_on_an_issue_leads_to_one_comment_which_is_the_answer(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue("Something is wrong.")

        said = world.github.comment("ann", issue, "@claude-bridge\nsay all is well")
        answer = world.wait_for(issue, "all is well")

        world.settled()
        assert world.visible(issue) == [answer]
        assert said.reactions == [("claude-bridge[bot]", "eyes"), ("claude-bridge[bot]", "+1")]
        assert world.turns() == 1


@pytest.mark.long
def test_two_agents_on_one_issue_answer_side_by_side_each_as_itself(tmp_path: Path) -> None:
    with GithubWorld(tmp_path, agents=("claude", "codex")) as world:
        issue = world.issue()

        world.github.comment("ann", issue, "@claude-bridge @codex-bridge\nsay here I am")
        world.wait_for(issue, "here I am", "claude")
        world.wait_for(issue, "here I am", "codex")
        world.github.comment("ann", issue, "@codex-bridge\nsay only me")
        world.wait_for(issue, "only me", "codex")
        world.github.comment("ann", issue, "nobody in particular")

        world.settled()
        assert [len(world.visible(issue, agent)) for agent in world.agents] == [1, 2]
        prompts = [row[0] for row in world.bridge.rows("select prompt from turn order by id")]
        for agent in world.agents:
            assert sum(f"\n- {agent}\n" in prompt for prompt in prompts) == 1
        assert world.turns() == 3


@pytest.mark.long
def test_a_comment_on_a_line_of_the_agents_own_pull_request_is_answered_under_it(
    tmp_path: Path,
) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.own_pull()
        world.github.review("ann", pull, None, ("new.py", 1, "say because of you"))
        answer = world.wait_for(pull, "because of you")

        world.github.comment("ann", pull, "say this is for nobody")
        world.settled()
        assert pull.pull is not None
        assert answer.reply_to == pull.pull.comments[0].id
        assert world.turns() == 1


@pytest.mark.long
def test_a_review_with_many_comments_is_one_turn_that_knows_them_all(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        pull = world.own_pull()
        lines = [("README.md", 4, "say first"), ("new.py", 1, "say second")]

        world.github.review("ann", pull, "say whole", *lines, state="changes_requested")
        world.wait_for(pull, "second")

        world.settled()
        assert world.turns() == 1
        (prompt,) = world.prompts()
        assert [words in prompt for words in ("whole", "first", "second")] == [True] * 3


def test_whoever_may_not_is_told_so_and_nothing_happens(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue(by="mallory")

        world.github.comment("mallory", issue, "@claude-bridge say evil things")
        world.wait_for(issue, "write access to acme/widgets")
        world.github.comment("tim", issue, "say nothing to anybody")

        world.settled()
        assert world.turns() == 0
        assert len(world.visible(issue)) == 1


def test_a_bot_that_may_not_is_not_even_answered(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        world.github.account("noisy[bot]", "Bot")

        world.github.comment("noisy[bot]", issue, "@claude-bridge say evil things")

        world.settled()
        assert (world.turns(), world.visible(issue)) == (0, [])


@pytest.mark.slow
def test_a_label_and_an_edit_that_adds_the_mention_start_turns_of_one_session(
    tmp_path: Path,
) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue("It fails.", by="rae")
        comment = world.github.comment("ann", issue, "say edited in")

        world.github.label("ann", issue, "agent:claude")
        world.wait_for(issue, "Handle this issue")
        world.github.edit_comment("ann", issue, comment, "@claude-bridge\nsay edited in")
        world.wait_for(issue, "edited in")

        world.settled()
        assert world.turns() == 2
        assert world.bridge.rows("select count(*) from session") == [(1,)]


@pytest.mark.long
def test_stop_stops_by_mention_and_without(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        for words in ("@claude-bridge stop", "stop"):
            world.github.comment("ann", issue, "@claude-bridge\nhold never")
            world.bridge.wait(
                lambda: ("prompted",) in world.bridge.rows("select state from turn"), "no turn"
            )
            world.github.comment("ann", issue, words)
            world.settled()

        assert world.bridge.rows("select distinct state from turn") == [("cancelled",)]
        assert ["Stopped" in each.body for each in world.visible(issue)] == [True, True]


@pytest.mark.slow
def test_a_comment_that_waits_follows_its_author(tmp_path: Path) -> None:
    with GithubWorld(tmp_path, agents=("claude", "codex")) as world:
        issue = world.issue()
        world.github.comment("ann", issue, "@claude-bridge\nhang")
        world.bridge.wait(
            lambda: ("prompted",) in world.bridge.rows("select state from turn"), "no turn"
        )
        first = world.github.comment("ann", issue, "@claude-bridge\nsay one")
        second = world.github.comment("ann", issue, "@claude-bridge\nsay two")

        world.github.edit_comment("bob", issue, first, "@claude-bridge\nsay forged")
        world.github.edit_comment("ann", issue, first, "@claude-bridge\nsay better")
        world.github.delete_comment("cleo", issue, second)
        edits = "select reason from delivery where reason like 'edited:%' order by seq"
        known = [("edited: changed",), ("edited: dropped",)]
        world.bridge.wait(lambda: world.bridge.rows(edits) == known, "not followed")
        world.github.comment("ann", issue, "@claude-bridge queue now")
        world.wait_for(issue, "better")

        world.settled()
        words = world.prompts()[-1]
        assert [each in words for each in ("one", "two", "forged", "better")] == [False] * 3 + [
            True
        ]


@pytest.mark.long
def test_an_ask_says_how_to_answer_it(tmp_path: Path) -> None:
    with GithubWorld(tmp_path, settings={"GRACE_SECONDS": "0"}) as world:
        issue = world.issue()

        world.github.comment("ann", issue, "@claude-bridge\nwrite a.txt hello")

        ask = world.wait_for(issue, "✋")
        assert "1. `Allow once`\n" in ask.body


@pytest.mark.slow
def test_one_event_is_one_turn_however_often_and_in_which_order_it_arrives(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        world.github.quiet()
        world.github.hooks.held = held = list[Event]()
        world.github.comment("ann", issue, "@claude-bridge\nsay one answer")
        world.github.comment("ann", issue, "untagged")
        second, first = held

        assert world.github.hooks.deliver(second) == 200
        with ThreadPoolExecutor(5) as pool:
            statuses = set(pool.map(world.github.hooks.deliver, [first] * 5))
        statuses |= set(replay(world, first, 1_000))

        world.wait_for(issue, "one answer")
        world.settled()
        assert statuses == {200}
        assert world.turns() == 1
        assert len(world.visible(issue)) == 1


def replay(world: GithubWorld, event: Event, times: int) -> list[int]:
    """Send the same bytes under new ids."""
    with httpx.Client(trust_env=False, verify=False) as client:
        return [
            client.post(
                event.app.hook_url,
                content=event.body,
                headers={**event.headers(), "x-github-delivery": str(uuid4())},
            ).status_code
            for _ in range(times)
        ]


@pytest.mark.long
def test_what_was_said_while_the_bridge_was_down_is_answered_once(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        world.settled()
        world.bridge.kill()
        world.github.comment("ann", issue, "@claude-bridge\nsay better late than never")
        world.github.quiet()

        world.bridge.start()
        world.wait_for(issue, "better late than never")
        missed = world.github.hooks.of(world.apps["claude"])
        for attempt in [each for each in missed if each.event.kind == "issue_comment"][-1:]:
            assert world.github.hooks.deliver(attempt.event, redelivery=True) == 200

        world.settled()
        assert world.turns() == 1
        assert len(world.visible(issue)) == 1


@pytest.mark.slow
def test_a_comment_whose_answer_was_lost_is_not_written_twice(tmp_path: Path) -> None:
    with GithubWorld(tmp_path) as world:
        issue = world.issue()
        world.github.fail("POST", r"/issues/1/comments$")

        world.github.comment("ann", issue, "@claude-bridge\nsay only once")
        world.wait_for(issue, "only once")

        world.settled()
        assert len(world.visible(issue)) == 1


def test_forged_webhooks_are_refused_and_lead_to_nothing(tmp_path: Path) -> None:
    with GithubWorld(tmp_path, agents=("claude", "codex")) as world:
        issue = world.issue()
        world.github.quiet()
        world.github.hooks.held = held = list[Event]()
        world.github.comment("ann", issue, "@claude-bridge\nsay evil things")
        mine = next(event for event in held if event.app is world.apps["claude"])
        other = next(event for event in held if event.app is world.apps["codex"])
        elsewhere = {**mine.headers(), "x-github-hook-installation-target-id": "1"}

        assert forge(mine, mine.headers(secret="guessed")) == 401
        assert forge(mine, other.headers()) == 401
        assert forge(mine, elsewhere) == 403

        world.settled()
        assert world.turns() == 0


def forge(event: Event, headers: dict[str, str]) -> int:
    """Send something that is not from GitHub, and so is not in its log either."""
    with httpx.Client(trust_env=False, verify=False) as client:
        return client.post(event.app.hook_url, content=event.body, headers=headers).status_code
