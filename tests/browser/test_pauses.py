"""What the operator paused is seen on every page: when it is opened, and while it is open."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.served import Forked
from tests.support.terminal import succeed

LOW = (1280, 560)
"""A window in which a new thread has more to show than fits."""


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {
        "claude": demo(display_name="Claude", default=True),
        "codex": demo(display_name="Codex"),
    }


@pytest.mark.long
def test_a_pause_is_seen_wherever_it_matters_until_it_ends(bridge: Forked, visit: Visiting) -> None:
    person = visit(size=LOW)
    thread = person.open()
    thread.say("say hello")
    thread.settled()
    shown = thread.page.locator("#paused")
    expect(shown).to_be_empty()

    succeed(bridge, "pause", "--all")

    fresh = person.open()
    banner = fresh.page.locator("#paused")
    expect(banner).to_contain_text("Everything is paused since")
    expect(banner).to_be_in_viewport(ratio=1)
    expect(banner.locator("code")).to_have_text("agent-bridge resume --all")
    expect(fresh.page.get_by_role("heading", name="What should we work on?")).to_be_in_viewport(
        ratio=1
    )
    assert fresh.findings() == []
    fresh.picture("paused")
    expect(shown).to_contain_text("Everything is paused since")

    succeed(bridge, "pause", "codex")
    succeed(bridge, "pause", "slack:C1")
    succeed(bridge, "resume", "--all")

    expect(banner.locator("p")).to_have_count(2)
    expect(banner).to_contain_text("codex is paused since")
    expect(banner).to_contain_text("slack:C1 is paused since")
    expect(shown).to_be_empty()

    here = "web:" + thread.path.rpartition("/")[2]
    succeed(bridge, "pause", here)
    succeed(bridge, "pause", "claude")

    expect(shown.locator("p")).to_have_count(2)
    expect(shown).to_contain_text("claude is paused since")
    expect(shown).to_contain_text(f"{here} is paused since")
    thread.picture("paused-thread")

    for scope in ("codex", "slack:C1", here, "claude"):
        succeed(bridge, "resume", scope)

    expect(banner).to_be_empty()
    expect(shown).to_be_empty()
