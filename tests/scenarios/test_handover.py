"""Two agents, one conversation: hand-over with words and branch, going back, refusal, review."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sim.github.state import Issue
from tests.support.github import Hub
from tests.support.slack import SlackWorld

AGENTS = ("claude", "codex")
PROMPTS = """
    select turn.prompt from turn join session on session.id = turn.session
    where session.agent = ? and turn.prompt like ? order by turn.id
"""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SlackWorld, Hub]]:
    """Open a workspace whose channel is about a repository, and whose third agent has no app."""
    folder = tmp_path_factory.mktemp("handover")
    with Hub(folder, AGENTS) as hub:
        world = SlackWorld(folder, agents=AGENTS, elsewhere=("hermit",), page=True)
        world.entry = {"mode": "free"}
        world.settings = {
            **hub.settings,
            "SLACK_CHANNEL_REPOS": f'{{"{world.channel}": "acme/widgets"}}',
        }
        with world:
            hub.call(world.bridge)
            yield world, hub


def prompt_of(world: SlackWorld, agent: str, words: str) -> str:
    """Read what an agent was told in the turn with these words."""
    return str(world.bridge.rows(PROMPTS, agent, f"%{words}%")[-1][0])


@pytest.mark.long
def test_who_is_not_here_or_not_known_is_refused_with_what_would_help(
    town: tuple[SlackWorld, Hub],
) -> None:
    world, _ = town
    thread = world.say(f"{world.at('claude')} say hello")
    world.wait_answer(thread, "hello")

    world.say("!agent hermit", thread=thread)
    world.wait_told(thread, "hermit is not available here: it is not connected to slack yet.")
    world.wait_told(thread, "agent-bridge manifest slack hermit")
    world.say("!agent nemo", thread=thread)
    world.wait_told(thread, "No agent is called nemo.")
    world.say("!agent", thread=thread)
    world.wait_told(thread, "codex (`codex`): ready")
    world.wait_told(thread, "hermit (`hermit`): not here: it is not connected")
    world.say("!agent codex", thread=thread, who=world.guest)
    world.wait_told(thread, "codex did not act")
    world.say("agent smith is wrong", thread=thread)
    world.wait_answer(thread, "agent smith is wrong")
    world.settle()

    held = "select count(*) from place where name = ? and holder is not null"
    assert world.bridge.rows(held, f"{world.channel}:{thread}") == [(0,)]


@pytest.mark.long
def test_a_thread_is_handed_over_with_its_words_its_branch_and_what_was_left_over(
    town: tuple[SlackWorld, Hub],
) -> None:
    world, hub = town
    known = len(hub.pulls())
    thread = world.say(f"{world.at('claude')} write one.txt by claude")
    world.wait_answer(thread, "/pull/")
    pull = hub.pulls()[known]
    # A turn that is stopped delivers nothing: its file comes along all the same.
    world.say("write left.txt unfinished\nhold never", thread=thread, who=world.bob)
    left = "select count(*) from transcript where kind = 'text' and text like '%Wrote left.txt%'"
    world.bridge.wait(lambda: world.bridge.rows(left)[0][0] > 0, "nothing is left over")
    world.say("!stop", thread=thread)
    world.wait_told(thread, "Stopped.")

    world.say("!agent codex write two.txt by codex", thread=thread)
    world.wait_answer(thread, f"#{pull.number}>", "codex")
    world.settle()

    files = [hub.file(pull, name) for name in ("one.txt", "left.txt", "two.txt")]
    assert files == ["by claude", "unfinished", "by codex"]
    assert len(hub.pulls()) == known + 1
    told = prompt_of(world, "codex", "two.txt")
    assert "You take over from claude." in told
    assert "write one.txt by claude" in told
    assert "claude: Wrote one.txt." in told
    assert "Bob: write left.txt unfinished" in told
    assert told.endswith("\nwrite two.txt by codex")

    # The agent that has the thread speaks about the pull request, although another opened it.
    hub.github.close_pull("ann", pull, merge=True)
    world.wait_answer(thread, "Merged: ", "codex")
    hub.github.quiet()
    world.settle()
    assert sum("Merged: " in each.words for each in world.said(thread)) == 1


@pytest.mark.long
def test_going_back_brings_words_and_commits(town: tuple[SlackWorld, Hub]) -> None:
    world, hub = town
    known = len(hub.pulls())
    thread = world.say(f"{world.at('claude')} write first.txt by claude")
    world.wait_answer(thread, "/pull/")
    pull = hub.pulls()[known]
    world.say("!agent codex write second.txt by codex", thread=thread)
    world.wait_answer(thread, "second.txt", "codex")

    world.say("!agent claude", thread=thread)
    world.wait_answer(thread, "claude takes over.")
    world.say("run cat second.txt > third.txt", thread=thread)
    world.wait_answer(thread, "third.txt")
    world.settle()

    back = prompt_of(world, "claude", "third.txt")
    assert "codex pushed to your branch" in back
    assert "codex: Wrote second.txt." in back
    assert hub.file(pull, "third.txt") == "by codex"
    assert len(hub.pulls()) == known + 1


@pytest.mark.long
def test_a_limited_agent_offers_the_hand_over_and_the_other_keeps_the_thread(
    town: tuple[SlackWorld, Hub],
) -> None:
    world, _ = town
    thread = world.say(f"{world.at('claude')} limit 600")
    offer = world.wait_button(thread, "Give it to codex")

    world.slack.click(world.ann, offer.ts, "Give it to codex")

    world.wait_answer(thread, "Handed over to codex.")
    limited = world.wait_button(thread, "Stop", "codex")
    world.slack.click(world.ann, limited.ts, "Stop")
    world.wait_answer(thread, "Stopped.", "codex")
    world.say("say it is mine now", thread=thread)
    world.wait_answer(thread, "it is mine now", "codex")
    world.settle()


@pytest.mark.long
def test_a_colleague_s_branch_is_reviewed_in_slack_with_nothing_to_push_to(
    town: tuple[SlackWorld, Hub],
) -> None:
    world, hub = town
    known = len(hub.pulls())
    thread = world.say(f"{world.at('claude')} write work.txt first version")
    world.wait_answer(thread, "/pull/")
    pull = hub.pulls()[known]

    push = "run git push origin HEAD:refs/heads/mine 2>&1"
    world.say(f"{world.at('codex')} review this\nrun cat work.txt\n{push}", thread=thread)
    world.wait_answer(thread, "This session is read-only and has no branch to push to.", "codex")
    world.wait_answer(thread, "first version", "codex")
    told = prompt_of(world, "codex", "review this")
    assert "+first version" in told
    assert "Review agent/claude/" in told
    assert "Your folder has it checked out." in told
    assert "for reading; you cannot push from it" in told

    world.say(f"{world.at('claude')} write work.txt second version", thread=thread)
    world.wait_answer(thread, "work.txt", times=2)
    world.settle()
    again = f"{world.at('codex')} review PR #{pull.number} again\nrun cat work.txt"
    world.say(again, thread=thread)
    world.wait_answer(thread, "second version", "codex")
    world.settle()
    assert "+second version" in prompt_of(world, "codex", "again")

    # Handed over, the reviewer gets the branch.
    world.say("!agent codex write more.txt by the reviewer", thread=thread)
    world.wait_answer(thread, "more.txt", "codex")
    world.settle()
    assert hub.file(pull, "more.txt") == "by the reviewer"
    assert len(hub.pulls()) == known + 1


@pytest.mark.slow
def test_a_pull_request_on_github_is_handed_over_to_an_agent_that_has_an_app_there(
    town: tuple[SlackWorld, Hub],
) -> None:
    world, hub = town
    known = len(hub.pulls())
    issue = hub.github.open_issue("ann", hub.repository, "Add it", "Please.")
    hub.github.comment("ann", issue, "@claude-bridge\nwrite issue.txt by claude")
    hub.github.wait(lambda: len(hub.pulls()) > known)
    hub.github.quiet()
    world.settle()
    pull = hub.pulls()[known]

    hub.github.comment("ann", pull, "@claude-bridge agent hermit")
    hub.github.wait(lambda: said(pull, "hermit is not available here: it is not connected to"))
    hub.github.comment("ann", pull, "@claude-bridge agent codex write pull.txt by codex")
    hub.github.wait(lambda: said(pull, "Wrote pull.txt."))
    hub.github.quiet()
    world.settle()

    assert hub.file(pull, "pull.txt") == "by codex"
    assert len(hub.pulls()) == known + 1


def test_a_thread_of_the_page_is_handed_over_and_back_over_the_api(
    town: tuple[SlackWorld, Hub],
) -> None:
    world, hub = town
    known = len(hub.pulls())
    api = world.bridge.http
    new = {"agent": "claude", "text": "write page.txt one", "repository": "acme/widgets"}
    session = api.post("/api/v1/sessions", json=new).json()
    world.settle()
    [pull] = hub.pulls()[known:]

    over = f"/api/v1/sessions/{session['id']}/handover"
    unknown = api.post(over, json={"agent": "nemo"})
    first = api.post(over, json={"agent": "hermit"})
    second = api.post(over, json={"agent": "codex", "text": "write page.txt two"})
    world.settle()
    back = api.post(over, json={"agent": "claude", "text": "run cat page.txt"})
    world.settle()

    assert (unknown.status_code, first.status_code) == (404, 202)
    assert first.json() == {"agent": "hermit", "thread": session["thread"], "session": None}
    assert second.json()["session"]["agent"] == "codex"
    assert back.json()["session"]["id"] == session["id"]
    assert hub.file(pull, "page.txt") == "two"
    assert len(hub.pulls()) == known + 1
    told = prompt_of(world, "codex", "write page.txt two")
    assert "You take over from claude." in told
    assert "claude: Wrote page.txt." in told
    returned = prompt_of(world, "claude", "run cat page.txt")
    assert "codex pushed to your branch" in returned
    assert "codex: Wrote page.txt." in returned


def said(issue: Issue, words: str) -> list[str]:
    """List the comments of an issue with these words."""
    return [each.body for each in issue.comments if words in each.body]
