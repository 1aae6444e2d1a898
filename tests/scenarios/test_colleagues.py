"""Two agents as colleagues: one changes the code from Slack, the other reviews in the thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.github.state import Comment, Issue
from tests.support.github import Hub
from tests.support.slack import SlackWorld

AGENTS = ("claude", "codex")
SILENCE = "select count(*) from transcript where text = 'nobody_answers'"


@pytest.mark.long
def test_claude_fixes_the_login_in_a_pull_request_and_codex_reviews_it_in_the_same_thread(
    tmp_path: Path,
) -> None:
    with Hub(tmp_path, AGENTS) as hub, company(tmp_path, hub) as world:
        hub.call(world.bridge)
        thread = world.say(f"{world.at('claude')} fix the login bug\nwrite login.txt fixed")
        question = world.wait_button(thread, "Allow once")
        world.slack.click(world.ann, question.ts, "Allow once")
        world.wait(lambda: any("/pull/" in each.words for each in world.answers(thread)))
        [pull] = hub.pulls()
        world.wait_answer(thread, f"/acme/widgets/pull/{pull.number}|#{pull.number}>")

        review = f"{world.at('codex')} review #{pull.number}\nsay found two edge cases"
        world.say(review, thread=thread, who=world.bob)
        world.wait_answer(thread, "found two edge cases", "codex")
        world.say("say thanks, can you also check the tests?", thread=thread)
        world.bridge.wait(lambda: world.bridge.rows(SILENCE) == [(1,)], "it was not taken in")
        world.say("!listen latest", thread=thread)
        world.wait(
            lambda: any("latest" in m.words for m in world.slack.thread(world.channel, thread))
        )
        world.say("say the tests are checked", thread=thread)
        world.wait_answer(thread, "the tests are checked", "codex")
        world.settle()

    assert pull.user is hub.apps["claude"].bot
    assert hub.file(pull, "login.txt") == "fixed"
    [_, told, _] = [row[0] for row in world.bridge.rows("select prompt from turn order by id")]
    assert "fix the login bug" in told
    assert "claude: Wrote login.txt." in told
    assert f"/acme/widgets/pull/{pull.number}" in told
    assert f"review #{pull.number}" in told
    assert "a clone of acme/widgets" in told


@pytest.mark.slow
def test_a_review_of_the_pull_request_goes_on_with_the_work_begun_in_slack(tmp_path: Path) -> None:
    with Hub(tmp_path, AGENTS) as hub, company(tmp_path, hub) as world:
        hub.call(world.bridge)
        thread = world.say(f"{world.at('claude')} write login.txt fixed")
        world.slack.click(world.ann, world.wait_button(thread, "Allow once").ts, "Allow once")
        world.wait_answer(thread, "/pull/")
        [pull] = hub.pulls()

        hub.github.review("ann", pull, None, ("login.txt", 1, "recall"))
        hub.github.wait(lambda: any("login.txt" in each.body for each in said(pull)))
        hub.github.quiet()
        world.settle()

    assert world.bridge.rows("select count(*) from session") == [(1,)]


def said(pull: Issue) -> list[Comment]:
    """List what stands below the comment on a line."""
    return pull.pull.comments[1:] if pull.pull else []


def company(folder: Path, hub: Hub) -> SlackWorld:
    """Make a workspace whose one channel is about the repository."""
    world = SlackWorld(folder, agents=AGENTS)
    world.settings = {
        **hub.settings,
        "SLACK_CHANNEL_REPOS": f'{{"{world.channel}": "acme/widgets"}}',
    }
    return world
