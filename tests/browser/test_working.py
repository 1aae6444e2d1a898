"""While an agent works: what it runs, where it is in its plan, for how long, and how calls end."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.plays import call, edit, many, plan, player, put, text
from tests.support.served import Site, let_go
from tests.support.window import PHONE

STEPS = ("Read the failing test", "Repair the check", "Run the tests", "Open the pull request")
COMMAND = "pytest -q --maxfail=1 tests/auth"

# Notes whenever the list and the head of the thread say different things.
_WATCH = """() => {
  window.disagreed = [];
  const compare = () => {
    const head = document.querySelector("#state > .dot")?.className.replace("dot", "mark");
    const line = document.querySelector("#threads .thread.on .mark")?.className;
    if (line !== undefined && head !== line) window.disagreed.push([head, line]);
  };
  new MutationObserver(compare).observe(document.body, { childList: true, subtree: true });
}"""


# Scrolls to the beginning, and waits until that is drawn.
_SCROLL_UP = """element => {
  element.scrollTop = 0;
  return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


def at(step: int) -> dict[str, Any]:
    """Show the plan at some step."""
    states = ["completed"] * step + ["in_progress"] + ["pending"] * (len(STEPS) - step - 1)
    return plan(*zip(STEPS, states, strict=True))


def work() -> list[dict[str, Any]]:
    asked = call(4, "Run `git push`", "execute", status="pending", rawInput={"command": "git push"})
    run = call(3, f"Run `{COMMAND}`", "execute", status="in_progress")
    run["rawInput"] = {"command": COMMAND}
    return [
        at(1),
        text("I look at the test first.\n\n" + "A long explanation follows.\n\n" * 30),
        edit(1, "auth/login.py", "a = 1\n", "a = 2\n"),
        call(2, "Look for the cause", "execute", status="failed", rawOutput="not found"),
        at(2),
        run,
        {"hold": "tests"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "call-3", "status": "completed"},
        asked,
        {"ask": {name: value for name, value in asked.items() if name != "sessionUpdate"}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "call-4", "status": "failed"},
        text("Not pushed."),
        {"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": {"amount": 0.43}},
    ]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    put(folder, "repair", work())
    failed = call(3, "Run `step 3`", "execute", status="failed", rawOutput="no such file")
    put(folder, "sweep", [*many(2), failed, *many(60)[3:], {"hold": "sweep"}, *many(90)[60:]])
    return {"claude": player(folder, display_name="Claude")}


@pytest.mark.long
def test_the_line_of_work_says_what_runs_and_the_cards_say_how_it_ended(
    visit: Visiting, bridge: Site
) -> None:
    window = visit(size=(1440, 900)).open()
    page = window.page
    window.say("repair it")
    line = page.locator("#status .busy")

    # What runs, at which step, for how long, with a way to stop it; in sight wherever one reads.
    expect(line.locator(".doing")).to_have_text(f"Claude is running {COMMAND}")
    expect(line.locator("summary")).to_have_text("step 3 of 4")
    expect(line.get_by_role("button", name="Stop Claude")).to_be_visible()
    page.locator("#scroll").evaluate("element => { element.scrollTop = 0; }")
    expect(line).to_be_in_viewport(ratio=1)
    timer = line.get_by_role("timer")
    expect(timer).not_to_have_text(timer.inner_text())
    taken = window.turns.locator("> .who .took")
    expect(taken).to_have_class("took on")
    # The plan is in sight too, and folded in the line of work.
    side = page.locator("#side .plan")
    expect(side.locator(".now")).to_contain_text("Run the tests")
    line.locator("summary").click()
    expect(line.locator(".plan .now")).to_contain_text("Run the tests")
    assert window.findings() == []
    window.picture("working-desktop-light")

    # Calls end with a tick or a cross; what a person rejects has not failed.
    page.evaluate(_WATCH)
    let_go(bridge.data_dir, "tests")
    window.button("Reject").click()
    window.settled()
    cards = window.turns.locator(".tool")
    expect(cards).to_have_count(4)
    ends = [card.locator("summary em") for card in cards.all()]
    expect(ends[0].locator(".tick")).to_be_visible()
    expect(ends[0]).not_to_have_attribute("title", re.compile(".*"))
    expect(ends[1].locator(".cross")).to_be_visible()
    expect(ends[2].locator(".took")).to_be_visible()
    expect(ends[3]).to_have_text("Rejected by operator")
    expect(ends[3].locator(".cross")).to_have_count(0)
    expect(page.locator("#side .decisions")).to_contain_text("git push")
    # Time stands still again, and money is plain.
    expect(taken).to_have_class("took")
    expect(window.turns.locator("> .who")).to_contain_text("$0.43")
    # List and head said the same all the time.
    expect(page.locator("#threads .thread.on .mark")).not_to_have_class("mark work")
    assert page.evaluate("window.disagreed") == []
    window.picture("working-ended-desktop-light")


@pytest.mark.slow
def test_a_long_turn_shows_its_last_steps_and_offers_the_earlier_ones(
    visit: Visiting, bridge: Site
) -> None:
    window = visit().open()
    page = window.page
    window.say("sweep it")
    cards = window.turns.locator(".tool")
    earlier = window.turns.locator("a[data-steps]")

    # As it grows, the last 40 stay, and what failed; reading further up is not disturbed.
    expect(cards.last).to_contain_text("step 60")
    expect(earlier).to_have_text("Show 19 earlier steps")
    expect(cards).to_have_count(41)
    expect(cards.first).to_contain_text("step 3")
    page.locator("#scroll").evaluate(_SCROLL_UP)
    top = cards.nth(5).bounding_box()
    let_go(bridge.data_dir, "sweep")
    expect(cards.last).to_contain_text("step 90")
    window.settled()
    expect(cards).to_have_count(71)
    assert cards.nth(5).bounding_box() == top
    reader = visit().open(window.path)
    expect(reader.turns.locator("a[data-steps]")).to_have_text("Show 49 earlier steps")
    expect(reader.turns.locator(".tool")).to_have_count(41)
    assert reader.findings() == []

    # The earlier ones open by key, in their order, where the link was.
    earlier.focus()
    place = earlier.bounding_box()
    page.keyboard.press("Enter")
    expect(earlier).to_have_count(0)
    expect(cards).to_have_count(90)
    titles = cards.locator("summary .title").all_text_contents()
    assert titles == [f"Run step {number}" for number in range(1, 91)]
    expect(cards.first.locator("summary")).to_be_focused()
    opened = window.turns.locator(".body > *").first.bounding_box()
    assert place is not None
    assert opened is not None
    assert abs(opened["y"] - place["y"]) < place["height"]

    # Without scripts the link leads to a longer page.
    plain = visit(scripts=False).open(window.path)
    plain.turns.locator("a[data-steps]").click()
    expect(plain.turns.locator(".tool")).to_have_count(90)


@pytest.mark.slow
def test_a_phone_has_the_plan_in_the_line_of_work(visit: Visiting) -> None:
    window = visit(size=PHONE, scheme="dark").open()
    window.say("repair it")
    line = window.page.locator("#status .busy")

    line.locator("summary").click()

    expect(line.locator(".plan li")).to_have_count(4)
    expect(line.locator(".plan .now")).to_contain_text("Run the tests")
    expect(line).to_be_in_viewport(ratio=1)
    assert window.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    assert window.findings() == []
    window.picture("working-phone-dark")
    window.button("Stop Claude").click()
    window.settled()
