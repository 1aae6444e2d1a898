"""Whole stories of an agent's pull request on the simulated GitHub: checks, conflicts, its end."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from sim.github.state import Check, Issue, Status
from tests.support.github import Hub, PullWorld
from tests.support.linear import LinearWorld
from tests.support.slack import SlackWorld

BROKEN = {
    "title": "1 test failed",
    "summary": "See the lines.",
    "annotations": [
        {"path": "greeting.txt", "start_line": 1, "message": "expected good day, found hello"}
    ],
}


def run(name: str, conclusion: str | None = "success", **output: object) -> Check:
    """Make a check of a workflow; without a conclusion it still runs."""
    status = "in_progress" if conclusion is None else "completed"
    return Check(None, name, "", 0.0, status, conclusion, dict(output))


def proposed(world: PullWorld, words: str = "write greeting.txt hello") -> tuple[Issue, Issue]:
    """Let Claude open a pull request from an issue; returns both."""
    issue = world.issue("Please add it.", "Add a greeting")
    world.github.comment("ann", issue, f"@claude-bridge\n{words}")
    world.allow()
    pull = world.opened()
    world.settled()
    return issue, pull


def said(world: PullWorld, issue: Issue, words: str) -> int:
    """Count the comments that say something."""
    return sum(words in each.body for each in world.visible(issue))


def told(world: PullWorld, issue: Issue, times: int) -> bool:
    """Tell whether failed checks were told so often."""
    return said(world, issue, "Checks failed") == times


@pytest.mark.long
def test_checks_and_merge_are_told_once_where_the_work_began(tmp_path: Path) -> None:
    with PullWorld(tmp_path, agents=("claude", "codex")) as world:
        issue, pull = proposed(world)
        world.github.check(pull, run("lint"), run("build", None))
        world.settled()
        assert said(world, issue, "Checks") == 0, "one of them still runs"

        world.github.check(pull, run("build"))
        world.wait_for(issue, f"Checks passed: {pull.url}")
        world.github.check(pull, run("lint"))
        world.github.close_pull("ann", pull, merge=True)
        world.wait_for(issue, f"Merged: {pull.url}")
        world.settled()
        world.bridge.kill()
        world.bridge.start()
        log = world.github.hooks.of(world.apps["claude"])
        for attempt in [each for each in log if each.event.kind in {"check_suite", "pull_request"}]:
            assert world.github.hooks.deliver(attempt.event, redelivery=True) == 200

        world.settled()
        assert said(world, issue, "Checks") == said(world, issue, "Merged") == 1
        assert (said(world, pull, "Checks"), world.visible(issue, "codex")) == (0, [])
        assert world.turns() == 1


@pytest.mark.slow
def test_a_fix_of_failed_checks_starts_when_somebody_asks_for_it_and_knows_what_failed(
    tmp_path: Path,
) -> None:
    with PullWorld(tmp_path) as world:
        issue, pull = proposed(world)

        world.github.check(pull, run("build", "failure", **BROKEN), run("lint"))
        offer = world.wait_for(issue, f"Checks failed on {pull.url}: build.")
        world.settled()
        assert "greeting.txt:1: expected good day, found hello" in offer.body
        assert world.turns() == 1, "nothing starts by itself"
        assert world.bridge.rows("select state from ask where kind = 'offer'") == [("open",)]
        world.github.comment("tim", issue, "@claude-bridge Fix the checks")
        world.wait_for(issue, "write access to")
        world.settled()
        assert world.turns() == 1

        world.github.comment("ann", issue, "@claude-bridge Fix the checks")
        world.wait_for(issue, "ann: Fix the checks")
        world.settled()

        _, prompt = world.prompts()
        data, _, words = prompt.rpartition("</data>")
        assert "expected good day, found hello" in data
        assert words.strip() == "Fix the checks."
        assert world.bridge.rows("select count(*) from session") == [(1,)]


@pytest.mark.slow
def test_a_commit_status_is_told_like_a_check_and_both_must_agree(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        issue, pull = proposed(world)
        assert pull.pull is not None

        world.github.report(pull, Status("ci/jenkins", "pending", "Build started"))
        world.github.check(pull, run("lint"))
        world.settled()
        assert said(world, issue, "Checks") == 0, "the status still waits"
        failed = Status("ci/jenkins", "failure", "3 tests failed", "https://ci.example/build/7")
        world.github.report(pull, failed)
        offer = world.wait_for(issue, f"Checks failed on {pull.url}: ci/jenkins.")
        world.github.report(pull, failed)
        world.settled()
        assert "ci/jenkins (failure)\n3 tests failed\nhttps://ci.example/build/7" in offer.body
        assert told(world, issue, 1)

        world.github.comment("ann", issue, "@claude-bridge Fix the checks")
        world.wait_for(issue, "ann: Fix the checks")
        world.settled()
        assert "3 tests failed\nhttps://ci.example/build/7" in world.prompts()[-1]
        assert world.bridge.rows("select tries from checkout") == [(1,)]

        world.github.push("ann", world.repository, pull.pull.head, {"n.txt": "mended"})
        world.github.report(pull, Status("ci/jenkins", "success"))
        world.wait_for(issue, f"Checks passed: {pull.url}")
        assert world.bridge.rows("select tries from checkout") == [(0,)]


@pytest.mark.slow
def test_after_three_fixes_that_did_not_help_no_further_one_is_offered(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        issue, pull = proposed(world)
        assert pull.pull is not None
        for number in range(1, 5):
            world.github.check(pull, run("build", "failure", **BROKEN))
            world.bridge.wait(partial(told, world, issue, number), "not told")
            world.settled()
            world.github.comment("ann", issue, "@claude-bridge Fix the checks")
            world.settled()
            world.github.push("ann", world.repository, pull.pull.head, {"n.txt": str(number)})
            world.github.quiet()

        assert said(world, issue, "Three fixes did not help") == 1
        assert world.bridge.rows("select tries from checkout") == [(3,)]
        offers = world.bridge.rows("select state from ask where kind = 'offer'")
        assert offers == [("answered",)] * 3

        world.github.check(pull, run("build"))
        world.wait_for(issue, "Checks passed")
        assert world.bridge.rows("select tries from checkout") == [(0,)]


@pytest.mark.slow
def test_a_conflict_with_the_base_is_told_with_its_files_and_can_be_given_to_the_agent(
    tmp_path: Path,
) -> None:
    with PullWorld(tmp_path) as world:
        issue, pull = proposed(world)

        world.github.push("bob", world.repository, "main", {"other.txt": "no matter"})
        world.settled()
        assert said(world, issue, "conflicts with") == 0
        world.github.push("bob", world.repository, "main", {"greeting.txt": "hi"})
        world.wait_for(issue, f"{pull.url} conflicts with `main` in greeting.txt.")
        world.github.push("bob", world.repository, "main", {"greeting.txt": "ho"})
        world.settled()
        assert said(world, issue, "conflicts with") == 1

        world.github.comment("ann", issue, "@claude-bridge say I will look at it")
        world.wait_for(issue, "I will look at it")
        world.settled()

        assert "conflicts with `main` in greeting.txt" in world.prompts()[-1]
        assert world.bridge.rows("select state from ask where kind = 'offer'") == [("cancelled",)]


@pytest.mark.slow
def test_a_person_closes_a_pull_request_and_whoever_opened_another_hears_nothing(
    tmp_path: Path,
) -> None:
    with PullWorld(tmp_path) as world:
        issue, pull = proposed(world)
        other = world.pull(branch="theirs")
        world.github.check(other, run("build", "failure"))
        world.github.close_pull("bob", other)

        world.github.close_pull("bob", pull)
        world.wait_for(issue, f"Closed without being merged: {pull.url}")
        world.github.check(pull, run("build", "failure"))
        world.settled()
        world.github.reopen_pull("bob", pull)
        world.github.check(pull, run("lint", "failure"), run("build"))
        world.wait_for(issue, "Checks failed")

        world.settled()
        assert said(world, issue, "Checks failed") == said(world, issue, "Closed") == 1


@pytest.mark.slow
def test_what_happened_while_the_bridge_was_down_is_told_when_it_is_back(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        issue, pull = proposed(world)
        world.bridge.kill()
        world.github.check(pull, run("build", "failure", **BROKEN))
        world.github.quiet()

        world.bridge.start()
        world.wait_for(issue, "Checks failed")

        world.settled()
        assert said(world, issue, "Checks failed") == 1


@pytest.mark.slow
def test_a_secret_in_a_failed_check_is_not_told(tmp_path: Path) -> None:
    with PullWorld(tmp_path, settings={"BRIDGE_ADMIN_TOKEN": "hunter2-hunter2-hunter2"}) as world:
        world.bridge.http.headers["Authorization"] = "Bearer hunter2-hunter2-hunter2"
        issue, pull = proposed(world)

        told = {"title": "hunter2-hunter2-hunter2", "summary": "x"}
        world.github.check(pull, run("build", "failure", **told))
        offer = world.wait_for(issue, "Checks failed")

        assert "hunter2" not in offer.body


@pytest.mark.long
def test_a_slack_thread_is_told_of_checks_and_merge_and_a_fix_is_a_button(tmp_path: Path) -> None:
    with Hub(tmp_path, ("claude",)) as hub:
        settings = {**hub.settings, "GITHUB_REPO": "acme/widgets"}
        with SlackWorld(tmp_path, settings=settings) as world:
            hub.call(world.bridge)
            thread = world.say(f"{world.at('claude')} write login.txt fixed")
            question = world.wait_button(thread, "Allow once")
            world.slack.click(world.bob, question.ts, "Allow once")
            world.wait_answer(thread, "Done in")
            world.settle()
            (pull,) = hub.pulls()

            hub.github.check(pull, run("build", "failure", **BROKEN))
            offer = world.wait_button(thread, "Fix the checks")
            assert "expected good day, found hello" in offer.words
            world.slack.click(world.guest, offer.ts, "Fix the checks")
            world.wait(lambda: world.whispers(world.guest))
            assert world.turns() == 1
            world.slack.click(world.bob, offer.ts, "Fix the checks")
            world.wait(lambda: "Bob: Fix the checks" in world.slack.message(offer.ts).words)
            world.settle()
            assert world.turns() == 2

            hub.github.close_pull("ann", pull, merge=True)
            world.wait_answer(thread, f"Merged: {pull.url}")


@pytest.mark.slow
def test_linear_is_told_of_checks_and_merge_and_a_fix_is_picked_there(tmp_path: Path) -> None:
    with Hub(tmp_path, ("demo",)) as hub:
        settings = {**hub.settings, "LINEAR_TEAM_REPOS": "ENG=acme/widgets"}
        with LinearWorld(tmp_path, settings=settings) as world:
            hub.call(world.bridge)
            session = world.assign("write login.txt fixed")
            world.wait_status(session, "awaitingInput")
            world.linear.pick(session, world.ann, "Allow once")
            world.wait_end(session)
            (pull,) = hub.pulls()

            hub.github.check(pull, run("build", "failure", **BROKEN))
            world.linear.wait(lambda: "Checks failed" in str(session.activities[-1].content))
            world.linear.pick(session, world.ann, "Fix the checks")
            world.bridge.wait(
                lambda: world.bridge.rows("select count(*) from turn") == [(2,)], "no turn"
            )
            world.wait_end(session)
            hub.github.close_pull("ann", pull, merge=True)
            world.linear.wait(lambda: "Merged" in str(session.activities[-1].content))
    assert world.linear.faults == []
