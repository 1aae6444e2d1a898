"""A typical coding turn on every simulated platform: what people read there, word for word."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sim.github.state import Comment
from sim.linear import LinearSession
from sim.slack.blocks import block_words, buttons
from sim.slack.model import Message
from tests.support.bridge import ROOT
from tests.support.github import Hub, PullWorld
from tests.support.linear import LinearWorld
from tests.support.slack import SlackWorld
from tests.support.typical import FILES, NARRATION, TITLE, WORDS, typical_agent

pytestmark = pytest.mark.one_database

GOLDEN = ROOT / "tests" / "golden" / "posts"
REWRITE = "REWRITE_GOLDENS"
"""Set in the environment, it writes the goldens instead of comparing: read them afterwards."""
PAGE = "https://bridge.example.com"


def compare(name: str, shown: str) -> None:
    """Compare what is shown with what was agreed on, without what differs each time."""
    for pattern, same in (
        (r"ab-[0-9a-f]{16}", "MARKER"),
        (r"http://127\.0\.0\.1:\d+", "http://HOST"),
        (r"https://\w+--[\w.]+", "https://HOST"),
        (r"(?<= )\d+[hms]( \d+[ms])*(?= )", "41s"),
        (r"\b17\d{8}[.-]\d{6}\b", "TS"),
        (r"slack-c\w+-\d+-\d+", "slack-channel"),
    ):
        shown = re.sub(pattern, same, shown)
    file = GOLDEN / f"{name}.md"
    if os.environ.get(REWRITE):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(shown)
    assert shown == file.read_text()


@pytest.mark.long
def test_on_github_the_answer_leads_with_the_outcome(tmp_path: Path) -> None:
    settings = {"BRIDGE_BASE_URL": PAGE}
    entry = typical_agent(tmp_path / "plays")
    with PullWorld(tmp_path, entry=entry, settings=settings) as world:
        world.github.git.commit("acme/widgets", "main", FILES, "Begin")
        world.repository.workflows = ("tests",)
        issue = world.issue(f"@claude-bridge {WORDS}", TITLE)
        shown = []
        for answer in ("Yes", "1", "1."):
            world.github.wait(lambda: _open(world.visible(issue)))
            (question,) = _open(world.visible(issue))
            shown.append(question.body)
            world.github.comment("ann", issue, f"@claude-bridge {answer}")
            world.github.wait(partial(_is_answered, question))
        world.opened()
        world.settled()
        last = world.visible(issue)

    compare("github", "\n\n---\n\n".join([*shown, *(each.body for each in last)]) + "\n")
    assert not any(words in last[-1].body.partition("<details>")[0] for words in NARRATION)


def test_on_slack_the_answer_leads_with_the_outcome(tmp_path: Path) -> None:
    with Hub(tmp_path, ("claude",)) as hub:
        hub.github.git.commit("acme/widgets", "main", FILES, "Begin")
        hub.repository.workflows = ("tests",)
        settings = {**hub.settings, "GITHUB_REPO": "acme/widgets", "BRIDGE_BASE_URL": PAGE}
        entry = typical_agent(tmp_path / "plays")
        with SlackWorld(tmp_path, settings=settings, entry=entry) as world:
            hub.call(world.bridge)
            thread = world.say(f"{world.at('claude')} {WORDS}")
            shown = []
            for _ in range(3):
                question = world.wait_button(thread, "Allow")
                shown.append(_written(question))
                world.slack.click(world.ann, question.ts, "Allow")
                world.wait(partial(_is_decided, question))
            world.settle()
            shown += [_written(each) for each in world.answers(thread)]
            notified = [each.words for each in world.slack.notified(world.ann)]

    compare("slack", "\n\n---\n\n".join(shown) + "\n")
    assert len([words for words in notified if "Expired tokens are refused now" in words]) == 1


@pytest.mark.slow
def test_on_linear_the_answer_leads_with_the_outcome(tmp_path: Path) -> None:
    with Hub(tmp_path, ("claude",)) as hub:
        hub.github.git.commit("acme/widgets", "main", FILES, "Begin")
        hub.repository.workflows = ("tests",)
        settings = {**hub.settings, "LINEAR_TEAM_REPOS": "ENG=acme/widgets"}
        settings["BRIDGE_BASE_URL"] = PAGE
        entry = typical_agent(tmp_path / "plays")
        with LinearWorld(tmp_path, ("claude",), settings=settings, entry=entry) as world:
            hub.call(world.bridge)
            session = world.assign(WORDS)
            for number in range(1, 4):
                world.linear.wait(partial(_is_asked, session, number))
                world.linear.pick(session, world.ann, "Allow")
            world.wait_end(session)
            world.linear.wait(lambda: bool(session.urls))

    compare("linear", "\n\n---\n\n".join(_acts(session)) + "\n")
    assert world.linear.faults == []
    # How calls are joined depends on time.
    actions = "\n".join("\n".join(map(str, a.content.values())) for a in session.of_type("action"))
    assert "app/auth/tokens.py" in actions
    assert not re.search(
        r"\b(Read|Edited|Ran|Searched)\b[`\s-]*(Read|Edit|Write|Run|grep)\b", actions
    )
    assert "Took" not in actions


def _open(comments: list[Comment]) -> list[Comment]:
    return [each for each in comments if "✋ Claude" in each.body]


def _is_answered(question: Comment) -> bool:
    return not _open([question])


def _is_decided(question: Message) -> bool:
    return not [*buttons(question.blocks)]


def _is_asked(session: LinearSession, number: int) -> bool:
    is_asked = len(session.of_type("elicitation")) == number
    return is_asked and session.status == "awaitingInput"


def _written(message: Message) -> str:
    """Write a message as people see it: its text, then its buttons."""
    labels = [
        f"[{each['text']['text']}]{f' {url}' if (url := each.get('url')) else ''}"
        for each in buttons(message.blocks)
    ]
    words = [text for block in message.blocks for text in _block_lines(block)]
    return "\n".join([*words, *labels])


def _block_lines(block: dict[str, Any]) -> Iterator[str]:
    if block["type"] != "rich_text":
        return block_words([block])
    return ("".join(each["text"] for each in part["elements"]) for part in block["elements"])


def _acts(session: LinearSession) -> Iterator[str]:
    """Write the activities that stay, and what stands next to them."""
    for each in session.activities:
        if not each.ephemeral and each.type != "action":
            yield "\n".join(map(str, each.content.values()))
    yield _json(session.plan)
    yield _json(session.urls)


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)
