"""Failures that help: what happened in plain words, the log, and three ways on."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.window import PHONE


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {
        "claude": demo(display_name="Claude", default=True),
        "codex": demo(display_name="Codex"),
        "gemini": demo("no-such-gemini", display_name="Gemini"),
    }


@pytest.mark.long
def test_a_crash_is_told_plainly_and_its_message_goes_on_by_a_click(visit: Visiting) -> None:
    person = visit()
    window = person.open()
    page = window.page
    expect(page.locator("#crew .off")).to_contain_text("Gemini")
    page.locator("#to").select_option(label="Gemini (unavailable)")
    expect(page.locator("#unable")).to_contain_text("'no-such-gemini' was not found on PATH.")
    window.picture("unavailable")
    page.locator("#to").select_option("claude")
    expect(page.locator("#unable")).to_be_empty()
    window.drop(notes_txt="read me")
    window.say("stderr 300\ncrash")

    card = page.locator(".failure")
    expect(card).to_contain_text("Claude crashed. Your message is safe.")
    expect(card.locator("p").first).not_to_contain_text("70")
    expect(page.locator("#threads .on .mark")).to_have_class("mark fail")
    expect(page.locator("#threads")).to_contain_text("Failed")
    expect(page.locator("#side")).to_contain_text("failed")

    card.get_by_text("Log and details").click()
    expect(card).to_contain_text("Exit status 70")
    expect(card.locator("pre")).to_contain_text("quick brown fox")
    assert window.findings() == []
    window.picture("failure")

    window.button("Try again").click()
    expect(page.locator(".failure")).to_have_count(2)
    expect(window.log).to_contain_text("operator tried again with Claude.")
    expect(window.button("Try again")).to_have_count(1)

    window.button("Edit and resend").click()
    box = page.get_by_label("Message", exact=True)
    expect(box).to_have_value("stderr 300\ncrash")
    expect(page.locator("#chosen")).to_contain_text("notes.txt")
    window.write("say it is well now")
    page.keyboard.press("Enter")
    expect(window.turns.last).to_contain_text("it is well now")
    window.settled()
    expect(window.button("Try again")).to_have_count(0)
    expect(page.locator("#state .dot")).to_have_class("dot ")


@pytest.mark.slow
def test_another_agent_takes_a_message_over_and_codes_stay_under_details(visit: Visiting) -> None:
    person = visit(size=PHONE, scheme="dark")
    window = person.open()
    window.say("fail\nsay nothing")
    card = window.page.locator(".failure")
    expect(card).to_contain_text("Claude failed:")
    expect(card.locator("p").first).not_to_contain_text("-326")
    window.picture("failure-phone")
    assert window.findings() == []

    card.get_by_text("Try with another agent").click()
    window.picture("failure-menu-phone")
    window.button("Codex").click()

    expect(window.page.locator(".failure")).to_have_count(2)
    expect(window.turns.last.locator(".who")).to_contain_text("Codex")
    expect(window.log).to_contain_text("operator tried again with Codex.")
    fresh = person.open(window.path)
    expect(fresh.page.locator(".failure")).to_have_count(2)
    expect(fresh.button("Try again")).to_have_count(1)
