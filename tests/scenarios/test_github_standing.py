"""How a pull request stands, as the page shows it: read after turns and webhooks, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.model.conversations import in_path
from sim.github.state import Issue
from tests.scenarios.test_github_life import proposed, run
from tests.support.document import parse
from tests.support.github import PullWorld


def rows(world: PullWorld, issue: Issue) -> dict[str, str]:
    """Read the side panel of an issue's page."""
    place = in_path(f"{issue.repository.full_name}:{issue.number}")
    page = world.bridge.http.get(f"/t/github/{place}", headers={"Accept": "text/html"})
    assert page.status_code == 200, page.text
    tree = parse(page.text.partition(">")[2])
    side = next(each for each in tree.elements() if each.id == "side")
    found = [each for each in side.elements() if each.tag in {"dt", "dd"}]
    words = [" ".join(each.text.split()) for each in found]
    return dict(zip(words[::2], words[1::2], strict=True))


@pytest.mark.long
def test_the_page_shows_branch_pull_request_checks_review_and_changes(tmp_path: Path) -> None:
    with PullWorld(tmp_path) as world:
        issue, pull = proposed(world)

        def shows(words: str) -> bool:
            return rows(world, issue).get("Pull request") == f"#{pull.number} {words}"

        def wait(words: str) -> None:
            world.bridge.wait(lambda: shows(words), f"{words}, but {rows(world, issue)}")

        wait("open")
        shown = rows(world, issue)
        assert shown["Repository"] == issue.repository.full_name
        assert shown["Branch"].startswith("agent/claude/")
        world.bridge.wait(
            lambda: rows(world, issue).get("Changes") == "1 file +1 \N{MINUS SIGN}0", "the changes"
        )

        world.github.check(pull, run("lint"), run("build", None))
        wait("open checks running")
        world.github.check(pull, run("build"))
        wait("open checks passed")
        world.github.review("ann", pull, None, state="approved")
        wait("open checks passed approved")
        world.github.close_pull("ann", pull, merge=True)
        wait("merged")
        assert world.turns() == 1
