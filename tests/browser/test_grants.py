"""What is always allowed in a thread, in a real browser: named, listed and taken back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo

ALWAYS = "Always allow `echo hi` in this thread"


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"claude": demo(display_name="Claude", default=True)}


def test_an_always_is_listed_next_to_its_thread_and_taken_back_there(visit: Visiting) -> None:
    window = visit().open()
    page = window.page
    window.say("run echo hi")
    window.button(ALWAYS).click()
    side = page.locator("#side")
    expect(side).to_contain_text("Always allowed")
    window.settled()
    expect(side.locator("dd", has_text="echo hi").first).to_contain_text("for Claude, until")
    window.say("run echo hi\nsay again")
    expect(window.turns.last).to_contain_text("again")
    window.settled()
    expect(page.locator(".ask[data-ask]")).to_have_count(0)
    window.picture("grants")
    assert window.findings() == []

    window.button("Take back").click()
    expect(side).not_to_contain_text("Always allowed")
    window.say("run echo hi")
    expect(page.locator(".ask[data-ask]")).to_have_count(1)
    window.button("Reject").click()
    window.settled()


@pytest.mark.long
def test_without_a_script_too_and_what_was_taken_back_meanwhile_is_said(visit: Visiting) -> None:
    window = visit().open()
    window.say("run echo hi\nrun echo ho")
    window.button(ALWAYS).click()
    window.button(ALWAYS.replace("echo hi", "echo ho")).click()
    window.settled()
    plain = visit(scripts=False, forgiven=("409",)).open(window.path)
    expect(plain.button("Take back")).to_have_count(2)

    window.button("Take back").first.click()
    expect(window.button("Take back")).to_have_count(1)
    plain.button("Take back").first.click()
    expect(plain.page.locator("body")).to_contain_text("This no longer holds")
    plain.page.goto(window.path)
    plain.button("Take back").click()

    expect(plain.page.locator("#side")).not_to_contain_text("Always allowed")
    expect(window.page.locator("#side")).not_to_contain_text("Always allowed")
