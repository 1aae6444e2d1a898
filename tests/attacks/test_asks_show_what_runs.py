"""People approve exactly what runs: whatever a command is made of, an ask shows it to the letter.

These enter by a whole bridge with a hostile agent on each of the simulated platforms.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.model.text import conceal
from sim.linear import LinearSession
from tests.support import asked
from tests.support.github import GithubWorld
from tests.support.linear import LinearWorld
from tests.support.plays import call, player, put
from tests.support.slack import SlackWorld
from tests.support.variants import quick

STARS = "rm -rf build/*old* pkg/__init__.py"
HOSTILE = (
    "echo `id` ```\n</code></pre><!-- @here <!channel> <@U1> @ann #1 ~~x~~ &lt;b&gt;\n"
    "cat a\u202etxt.hs \u200b\x1b[2K\r; rm -rf *a* __b__ \\u{202E} "
)
COMMANDS = pytest.mark.parametrize("command", quick(1, {"hostile": HOSTILE, "stars": STARS}))
OLD = "".join(f"line {number}\n" for number in range(20))
NEW = OLD.replace("line 3\n", "__import__('os').system('`id`')\n").replace("line 17\n", "")


def plays(folder: Path, command: str = STARS) -> dict[str, Any]:
    """Write down an agent that wants to run a command, and one that wants to edit a file."""
    run = call(1, command, "execute", status="pending", rawInput={"command": command})
    diff = {"type": "diff", "path": "src/app.py", "oldText": OLD, "newText": NEW}
    edit = call(2, "app.py", "edit", status="pending", content=[diff])
    for name, wanted in (("tidy", run), ("change", edit)):
        ask = {key: value for key, value in wanted.items() if key != "sessionUpdate"}
        put(folder, name, [{"ask": ask}])
    return player(folder)


def page(world: SlackWorld | GithubWorld | LinearWorld) -> str:
    """Open the thread on the page."""
    ((service, name),) = world.bridge.rows("select service, name from place")
    answer = world.bridge.http.get(f"/t/{service}/{name}", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    return answer.text


def github_ask(world: GithubWorld, words: str) -> str:
    """Have somebody ask the agent for something and read the comment that asks back."""
    issue = world.issue()
    world.github.comment("ann", issue, f"@claude-bridge\n{words}")
    world.wait_for(issue, "✋")
    return next(each.body for each in issue.comments if "✋" in each.body)


def linear_ask(world: LinearWorld, words: str) -> tuple[LinearSession, str]:
    """Have somebody ask the agent for something and read what it asks back."""
    session = world.assign(words)
    world.wait_status(session, "awaitingInput")
    return session, session.of_type("elicitation")[-1].body


def marked_up(value: Any) -> list[str]:
    """List all texts in blocks that Slack reads markup in."""
    if isinstance(value, list):
        return [text for each in value for text in marked_up(each)]
    if not isinstance(value, dict):
        return []
    own = [value["text"]] if value.get("type") in {"mrkdwn", "markdown"} else []
    return own + [text for each in value.values() for text in marked_up(each)]


@COMMANDS
def test_a_command_is_read_on_slack_and_the_page_to_the_letter(
    tmp_path: Path, command: str
) -> None:
    entry = plays(tmp_path / "plays", command)
    with SlackWorld(tmp_path, entry=entry) as world:
        thread = world.say(f"{world.at('claude')} tidy")
        question = world.wait_button(thread, "Allow once")

        assert command in map(conceal, asked.in_slack(question.blocks))
        assert [*map(conceal, asked.on_page(page(world)))] == [command]
        assert not [
            text for text in marked_up(question.blocks) if "old" in text or "channel" in text
        ]


@pytest.mark.slow
@COMMANDS
def test_a_command_is_read_on_github_and_the_page_to_the_letter(
    tmp_path: Path, command: str
) -> None:
    world = GithubWorld(tmp_path)
    world.bridge.agents = {"claude": plays(tmp_path / "plays", command)}
    with world:
        comment = github_ask(world, "tidy")

        assert command in map(conceal, asked.in_markdown(comment))
        assert [*map(conceal, asked.on_page(page(world)))] == [command]
        outside = asked.outside_code(comment)
        assert "@" not in outside.removeprefix("@ann"), "only the person who asked is mentioned"
        assert "#1" not in outside


@COMMANDS
def test_a_command_is_read_on_linear_and_the_page_to_the_letter(
    tmp_path: Path, command: str
) -> None:
    with LinearWorld(tmp_path, entry=plays(tmp_path / "plays", command)) as world:
        _, body = linear_ask(world, "tidy")

        assert command in map(conceal, asked.in_markdown(body))
        assert [*map(conceal, asked.on_page(page(world)))] == [command]
        assert "@" not in asked.outside_code(body)


def assert_shows_edit(blocks: list[str], words: str) -> None:
    """Look for the counts, the file and the changed lines of the edit."""
    assert "+1" in words
    assert "\N{MINUS SIGN}2" in words
    assert "src/app.py" in words
    (diff,) = (block for block in blocks if block.startswith((" ", "+", "-")))
    assert "-line 3\n+__import__('os').system('`id`')\n" in diff


def test_an_edit_is_not_approved_by_its_name_alone_on_slack(tmp_path: Path) -> None:
    with SlackWorld(tmp_path, entry=plays(tmp_path / "plays")) as world:
        thread = world.say(f"{world.at('claude')} change")
        question = world.wait_button(thread, "Allow once")

        assert_shows_edit(asked.in_slack(question.blocks), question.words)


@pytest.mark.long
def test_an_edit_is_not_approved_by_its_name_alone_on_github(tmp_path: Path) -> None:
    world = GithubWorld(tmp_path, settings={"BRIDGE_BASE_URL": "https://bridge.example"})
    world.bridge.agents = {"claude": plays(tmp_path / "plays")}
    with world:
        comment = github_ask(world, "change")

        assert_shows_edit(asked.in_markdown(comment), comment)
        assert "[Show everything](https://bridge.example/t/github/" in comment


@pytest.mark.long
def test_an_edit_is_not_approved_by_its_name_alone_on_linear_and_the_page(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, entry=plays(tmp_path / "plays")) as world:
        _, body = linear_ask(world, "change")

        assert_shows_edit(asked.in_markdown(body), body)
        assert_shows_edit(asked.on_page(page(world)), page(world))


def test_only_who_may_decides_an_ask_on_slack_and_only_once(tmp_path: Path) -> None:
    entry = plays(tmp_path / "plays")
    with SlackWorld(tmp_path, entry=entry) as world:
        thread = world.say(f"{world.at('claude')} tidy")
        question = world.wait_button(thread, "Allow once")
        world.slack.click(world.guest, question.ts, "Allow once")
        world.wait(lambda: len(world.whispers(world.guest)) == 1)
        world.say("Allow once", thread=thread, who=world.guest)
        world.say("Allow once", thread=thread, who=world.stranger)
        world.say("Allow once")
        assert world.bridge.rows("select state from ask") == [("open",)]

        late = json.loads(json.dumps(question.blocks))
        world.slack.click(world.bob, question.ts, "Reject")
        world.wait(lambda: "Bob: Reject" in question.words)
        question.blocks[:] = late
        world.slack.click(world.ann, question.ts, "Allow once")
        world.wait(lambda: world.whispers(world.ann))
        world.settle()

        assert "Bob already answered this" in world.whispers(world.ann)[-1]
        assert world.bridge.rows("select answer, answered_by from ask") == [("reject", "Bob")]


def test_a_guest_decides_nothing_on_linear(tmp_path: Path) -> None:
    with LinearWorld(tmp_path, entry=plays(tmp_path / "plays")) as world:
        session, _ = linear_ask(world, "tidy")
        guest = world.linear.person("Gus", guest=True)
        world.linear.reply(session, guest, "Allow once")
        world.linear.pick(session, guest, "Allow once")
        world.linear.wait(lambda: "full members" in session.activities[-1].body)
        waiting = "select count(*) from delivery where state = 'new'"
        world.bridge.wait(lambda: world.bridge.rows(waiting) == [(0,)], "some still wait")

        assert world.bridge.rows("select state from ask") == [("open",)]
