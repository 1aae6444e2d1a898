"""Two agents in one thread: each answers what is meant for it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {
        "claude": demo(display_name="Claude", default=True),
        "codex": demo(display_name="Codex"),
    }


@pytest.mark.long
def test_each_agent_answers_its_own(visit: Visiting) -> None:
    window = visit().open()
    window.say("@claude say I am the first")
    expect(window.turns).to_contain_text(["I am the first"])
    expect(window.turns.last.locator(".who")).to_contain_text("Claude")

    window.say("@codex say I am the second")
    expect(window.turns).to_contain_text(["I am the first", "I am the second"])
    expect(window.turns.last.locator(".who")).to_contain_text("Codex")

    window.say("@claude @codex say both of us")
    expect(window.turns).to_have_count(4)
    expect(window.turns.nth(2)).to_contain_text("both of us")
    expect(window.turns.nth(3)).to_contain_text("both of us")
    asked = [window.turns.nth(number).locator(".who h3").inner_text() for number in (2, 3)]
    assert sorted(asked) == ["Claude", "Codex"]


@pytest.mark.slow
def test_a_name_is_completed_with_the_keyboard_alone(visit: Visiting) -> None:
    window = visit().open()
    page = window.page
    page.keyboard.press("Escape")
    page.keyboard.press("m")

    page.keyboard.type("@co")
    expect(page.get_by_role("option", name="Codex @codex")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.type("say typed")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("say twice")
    page.keyboard.press("Enter")

    expect(window.turns).to_contain_text("typed")
    expect(window.turns).to_contain_text("twice")
    expect(window.turns.locator(".who")).to_contain_text("Codex")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="What should we work on?")).to_be_visible()


@pytest.mark.slow
def test_one_of_two_that_work_can_be_stopped_alone(visit: Visiting) -> None:
    window = visit().open()
    window.say("@claude @codex hold never")
    expect(window.page.locator("#status .busy")).to_have_count(2)

    window.button("Stop Codex").click()

    expect(window.page.locator("#status .doing")).to_have_text(["Claude is working"])
    expect(window.log).to_contain_text("Stopped.")
    window.button("Stop").click()
    window.settled()


@pytest.mark.slow
def test_the_picker_says_whom_a_new_thread_is_for(visit: Visiting) -> None:
    window = visit().open()

    window.page.locator(".card", has_text="Codex").click()
    expect(window.page.locator("#to")).to_have_value("codex")
    window.say("say picked")

    expect(window.turns.locator(".who")).to_contain_text("Codex")
    expect(window.log).to_contain_text("to Codex")


@pytest.mark.long
def test_the_picker_hands_a_thread_over_and_stays(visit: Visiting) -> None:
    window = visit().open()
    window.page.locator(".card", has_text="Claude").click()
    window.say("say I began it")
    expect(window.turns).to_contain_text(["I began it"])

    window.page.locator("#to").select_option("codex")
    window.say("recall")
    expect(window.turns).to_have_count(2)
    expect(window.turns.last.locator(".who")).to_contain_text("Codex")
    expect(window.log).to_contain_text("Handed over to Codex.")
    expect(window.page.locator("#to option").first).to_have_text("Codex")
    window.say("@claude say only asked")
    expect(window.turns).to_have_count(3)
    expect(window.turns.last).to_contain_text("only asked")

    window.say("say still mine")
    expect(window.turns).to_have_count(4)
    expect(window.turns.last.locator(".who")).to_contain_text("Codex")
    window.say("agent Claude say back again")
    expect(window.turns).to_have_count(5)
    expect(window.turns.last.locator(".who")).to_contain_text("Claude")
    expect(window.page.locator("#to option").first).to_have_text("Claude")
    window.say("agent")
    expect(window.log).to_contain_text("Codex (codex): ready")
