"""One agent asks another one: a line under its turn that folds out, live, and a page of its own."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.served import Site, let_go
from tests.support.window import PHONE, Window


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {
        "claude": demo(display_name="Claude", default=True),
        "codex": demo(display_name="Codex"),
    }


def ask_codex(task: str, then: str = "say I asked Codex.") -> str:
    """Write what makes Claude ask Codex."""
    arguments = {"to": "codex", "text": task, "mode": "async"}
    return f"@claude tool agents_message {json.dumps(arguments)}\n{then}"


def too_wide(window: Window) -> bool:
    page = "document.documentElement"
    return bool(window.evaluate(f"{page}.scrollWidth > {page}.clientWidth"))


@pytest.mark.long
def test_what_an_agent_does_for_another_is_seen_live_and_stopped_alone(
    visit: Visiting, bridge: Site
) -> None:
    window = visit(size=(1280, 900)).open()
    page = window.page
    window.say(ask_codex("say Looking at the tests.\nhold go\nsay They are **fine**.\nhold never"))
    errand = page.locator("details.tool", has_text="Codex").filter(has=page.locator(".errand"))
    expect(errand.locator("em")).to_contain_text("working")
    expect(window.turns).to_have_count(1)
    expect(page.locator("#status .doing")).to_have_text("Codex is working for Claude")

    errand.locator("summary").first.focus()
    page.keyboard.press("Enter")
    expect(errand).to_contain_text("Looking at the tests.")
    let_go(bridge.data_dir, "go")
    expect(errand.locator("strong")).to_have_text("fine")
    expect(errand.locator("summary").first).to_be_focused()
    window.picture("1280-light-errand")
    assert window.findings() == []

    window.button("Stop Codex").click()
    expect(errand.locator("em").first).to_contain_text("stopped")
    expect(page.locator("#status .busy")).to_have_count(0)
    page.reload()
    expect(errand.locator("em").first).to_contain_text("stopped")
    expect(page.locator("#threads a.thread")).to_have_count(1)

    phone = visit(size=PHONE, scheme="dark").open(window.path)
    phone.page.locator(".errand").click()
    phone.picture("390-dark-errand")
    assert phone.findings() == []
    assert not too_wide(phone)

    phone.page.get_by_role("link", name=re.compile("Open Codex.s thread")).click()
    expect(phone.page.locator(".elsewhere:not(.problem)")).to_contain_text(
        "Claude asked for this on behalf of"
    )
    expect(phone.page.locator("#composer")).to_have_count(0)
    phone.picture("390-dark-errand-page")
    assert phone.findings() == []
    assert not too_wide(phone)
    phone.page.locator(".elsewhere a").click()
    expect(phone.page).to_have_url(page.url)

    window = visit(size=(1280, 900)).open()
    window.say('@claude tool agents_message {"to": "codex", "text": "hold never"}')
    lines = window.page.locator("#status .busy")
    expect(lines).to_have_count(2)
    waits, works = (line.bounding_box() for line in lines.all())
    assert waits is not None
    assert works is not None
    assert waits["y"] + waits["height"] <= works["y"]
    window.page.locator("#state .stop").click()
    expect(lines).to_have_count(0)
