"""Claude writes and Codex reviews, as real agents: from a task in Slack to an approval."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.kits import REAL, Kit
from tests.agents.model import Model
from tests.agents.rig import place_files
from tests.support.company import AGENTS, Company
from tests.support.github import Hub
from tests.support.slack import SlackWorld

PATIENCE_SECONDS = 240.0
"""Real agents start three times, each within some seconds on a machine that is not full."""


@pytest.mark.slow
@pytest.mark.agents
def test_claude_writes_codex_reviews_claude_repairs_and_codex_approves(site: Path) -> None:
    kits = {kit.name: kit for kit in REAL if kit.name in AGENTS}
    for kit in kits.values():
        skip_if_missing(kit)
    with Model() as model, Hub(site, AGENTS) as hub:
        world = SlackWorld(site, agents=AGENTS, page=True)
        world.entries = {name: kit.entry(model.url) for name, kit in kits.items()}
        path = ":".join(kit.path for kit in kits.values())
        world.settings = {**hub.settings, "GITHUB_REPO": "acme/widgets", "PATH": path}
        for name, kit in kits.items():
            place_files(kit, site / "data" / "homes" / name, model)
        with world:
            hub.call(world.bridge)
            company = Company(world, hub)
            thread = world.say(f"{world.at('claude')} do this:\nrun echo broken > work.txt")
            attend(company, lambda: bool(hub.pulls()))
            company.rest(1)
            world.say("!review codex", thread=thread)
            attend(company, lambda: company.is_over() and told(company, thread, "approved"))

            [pull] = hub.pulls()
            assert pull.pull is not None
            assert [each.state for each in pull.pull.reviews] == ["changes_requested", "approved"]
            assert all(each.user is hub.apps["codex"].bot for each in pull.pull.reviews)
            assert [(each.path, each.line) for each in pull.pull.comments] == [("work.txt", 1)]
            assert hub.file(pull, "work.txt") == "repaired"
            for words in ("reviews", "requested changes", "looks at it again", "approved"):
                assert told(company, thread, words)


def skip_if_missing(kit: Kit) -> None:
    """Skip where an agent is not installed."""
    if kit.missing:
        pytest.skip(kit.missing)


def attend(company: Company, done: Callable[[], bool]) -> None:
    """Allow what agents ask for until something is so."""

    def looked() -> bool:
        open_asks = company.bridge.rows("select id, options from ask where state = 'open'")
        for ask, options in open_asks:
            kinds = {each["kind"]: each["id"] for each in json.loads(options)}
            path = f"/api/v1/asks/{ask}/answer"
            company.bridge.http.post(path, json={"option": kinds["allow_once"]})
        return done()

    company.bridge.wait(looked, "the agents are not done", PATIENCE_SECONDS)


def told(company: Company, thread: str, words: str) -> bool:
    """Tell whether the thread shows words about the reviewer."""
    said = [each.words for each in company.world.said(thread)]
    return any(f"codex {words}" in each.lower() for each in said)
