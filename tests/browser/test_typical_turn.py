"""A typical coding turn on the page by keyboard alone: from the log-in link to the merge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Agents
from tests.scenarios.test_github_life import run
from tests.support.bridge import SPEED
from tests.support.github import Hub
from tests.support.platform import Platform
from tests.support.served import Forked
from tests.support.typical import ASKED, CALLS, FILES, TITLE, WORDS, typical_agent
from tests.support.window import Visit, Window

WIDE = (1440, 900)
COUNTS = "+281\N{MINUS SIGN}4"


@pytest.fixture(scope="module")
def hub(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Open a GitHub whose repository has the fault."""
    with Hub(tmp_path_factory.mktemp("hub"), ("claude",)) as hub:
        hub.github.git.commit("acme/widgets", "main", FILES, "Begin")
        yield hub


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    plays = tmp_path_factory.mktemp("plays")
    return {"claude": typical_agent(plays, hold=".git/go", default=True, description="Writes code")}


@pytest.fixture(scope="module")
def bridge(hub: Hub, agents: Agents, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """Start a bridge that has an App there."""
    folder = tmp_path_factory.mktemp("bridge")
    with (
        Platform() as platform,
        Forked(folder, platform, agents, settings=hub.settings, speed=SPEED) as bridge,
    ):
        hub.call(bridge)
        yield bridge


@pytest.mark.slow
def test_from_the_log_in_to_a_merged_pull_request_by_keyboard_alone(
    browser: Browser, bridge: Forked, hub: Hub
) -> None:
    with closing(Visit(browser, bridge.url, size=WIDE)) as person:
        window = person.open(bridge.new_link())
        page, press = window.page, window.page.keyboard.press
        side = page.locator("#side")
        begin(window)
        for asked in ASKED:
            expect(page.locator(".ask:not(.closed)")).to_contain_text(asked)
            press("Escape")
            press("a")
            expect(window.button("Allow")).to_be_focused()
            press("1")

        # At work: what it runs, at which step, and how the tests failed.
        busy = page.locator("#status .busy")
        expect(busy).to_contain_text("Claude is running pytest -q")
        expect(busy).to_contain_text("step 4 of 4")
        expect(side.locator(".plan .ok")).to_have_count(3)
        failed = window.turns.locator(".tool", has_text="pytest -q tests/auth")
        expect(failed.locator("summary")).to_contain_text("2 failed, 10 passed in 1.84s")
        window.picture("typical-working")
        (clone,) = bridge.data_dir.glob("workspaces/*/.git")
        (clone / "go").touch()
        window.settled()

        # Done: the title, the answer and what came of it.
        expect(page.locator("h1")).to_have_text(TITLE)
        expect(window.turns).to_contain_text("210 passed in 14.21s")
        outcome = page.locator(".outcome")
        expect(outcome).to_contain_text(f"Pull request #1 {COUNTS} in 2 files")
        assert len(page.locator(".tool:not(:has(.tool))").all()) == CALLS
        (pull,) = hub.pulls()
        hub.github.check(pull, run("tests"))
        expect(side).to_contain_text("#1 open checks passed")
        expect(window.log).to_contain_text("Checks passed: #1")
        expect(side.locator("[data-single=c]")).to_have_text("2 files")
        assert window.findings() == []

        look_at_the_changes(window)
        page.wait_for_url("**/t/web/*")
        hub.github.close_pull("ann", pull, merge=True)
        expect(side).to_contain_text("#1 merged")
        expect(window.log).to_contain_text("Merged: #1")
        window.picture("typical-merged")
        press("Escape")
        person.context.route(pull.url, lambda route: route.fulfill(body="#1"))
        with page.expect_popup() as opened:
            press("p")
        expect(opened.value.locator("body")).to_have_text("#1")


def begin(window: Window) -> None:
    """Sign in, choose the repository, and say what is wrong."""
    page, press = window.page, window.page.keyboard.press
    expect(window.button("Sign in")).to_be_focused()
    press("Enter")
    box = page.get_by_label("Message", exact=True)
    expect(box).to_be_focused()
    for _ in range(2):
        press("Tab")
    expect(window.button("Works in: No repository")).to_be_focused()
    press("Enter")
    page.keyboard.type("widg")
    expect(page.locator("#repo-list [aria-selected=true]")).to_have_text("acme/widgets")
    press("Enter")
    expect(box).to_be_focused()
    page.keyboard.type(WORDS)
    press("Enter")


def look_at_the_changes(window: Window) -> None:
    """Go to the changes, from file to file, and back."""
    page, press = window.page, window.page.keyboard.press
    press("Escape")
    press("c")
    page.wait_for_url("**/workspace/*")
    expect(page.locator(".list")).to_contain_text("2 files changed +281")
    for name in ("app/auth/tokens.py", "tests/auth/test_expiry.py"):
        press("j")
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_focused()
    window.picture("typical-changes")
    expect(page.get_by_role("link", name="Pull request #1")).to_be_visible()
    press("t")
