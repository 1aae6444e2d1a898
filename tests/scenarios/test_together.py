"""Agents together: a review in rounds, in Slack and on GitHub, and on the page; a panel; a race."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.support.bridge import ROOT
from tests.support.github import Hub
from tests.support.slack import SlackWorld

AGENTS = ("claude", "codex")
COLLEAGUE = [sys.executable, str(ROOT / "tests" / "support" / "colleague_agent.py")]


class Company:
    """A workspace and a GitHub, with two agents that are on both and on the page."""

    def __init__(self, world: SlackWorld, hub: Hub) -> None:
        self.world, self.hub = world, hub
        self.bridge = world.bridge

    def begin_work(self, words: str) -> str:
        """Have Claude write a file and propose it; returns the thread."""
        world = self.world
        thread = world.say(f"{world.at('claude')} {words}")
        world.wait_answer(thread, "/pull/")
        return thread


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    folder = tmp_path_factory.mktemp("company")
    with Hub(folder, AGENTS) as hub:
        entry = {"command": COLLEAGUE, "mode": "free"}
        world = SlackWorld(folder, agents=AGENTS, entry=entry, page=True)
        world.settings = {**hub.settings, "GITHUB_REPO": "acme/widgets"}
        with world:
            hub.call(world.bridge)
            yield Company(world, hub)


def test_codex_reviews_what_claude_proposed_until_it_approves(company: Company) -> None:
    world, hub = company.world, company.hub
    thread = company.begin_work("write login.txt this is broken")
    pull = hub.pulls()[-1]
    assert pull.pull is not None

    world.say("!review codex", thread=thread)
    world.wait_told(thread, "codex approved")
    world.settle()

    first, second = pull.pull.reviews
    assert (first.state, second.state) == ("changes_requested", "approved")
    assert first.user is second.user is hub.apps["codex"].bot
    [comment] = pull.pull.comments
    assert (comment.path, comment.line) == ("login.txt", 1)
    assert comment.body == "This is broken: this is broken"
    assert hub.file(pull, "login.txt") == "this is repaired"
    told = "\n".join(each.words for each in world.said(thread))
    for words in ("codex reviews", "codex requested changes", "Repaired what was broken."):
        assert words in told
