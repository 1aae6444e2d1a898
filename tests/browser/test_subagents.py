"""A tree of sub-agents on the page: their work, their asks, and a stop for each."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from app.model.subagents import BELOW
from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.served import Site, let_go
from tests.support.window import PHONE

TREE = (
    "subagent explore say Looking around. && subagent reviewer say Reading. && "
    "subagent linter run echo linted\n"
    "subagent builder say Building. && hold never\n"
    "subagent tester hold go && say Tested."
)


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"claude": demo(display_name="Claude", default=True)}


def test_a_tree_of_three_levels_asks_and_one_of_it_is_stopped(
    visit: Visiting, bridge: Site
) -> None:
    window = visit().open()
    page = window.page
    window.say(TREE)

    question = page.locator("#log .ask").last
    who = BELOW.join(("Claude", "explore", "reviewer", "linter"))
    expect(question).to_contain_text(f"{who} wants to run")
    for name in ("explore", "builder", "tester"):
        expect(page.locator(f"details.tool:has(b:text-is('{name}'))").first).to_be_visible()
    page.locator("summary:has(b:text-is('explore'))").click()
    page.locator("summary:has(b:text-is('reviewer'))").click()
    linter = page.locator("summary:has(b:text-is('linter'))")
    expect(linter).to_contain_text("waiting for an answer")
    assert window.findings() == []
    window.picture("subagents")
    phone = visit(size=PHONE).open(window.path)
    expect(phone.page.locator("summary:has(b:text-is('builder'))")).to_be_visible()
    assert phone.findings() == []
    phone.picture("subagents-phone")

    page.get_by_role("button", name="Stop builder").click()
    expect(page.locator("summary:has(b:text-is('builder'))")).to_contain_text("stopped")
    question.get_by_role("button", name="Allow once").click()
    expect(linter.locator(".tick").first).to_be_attached()
    expect(page.locator("summary:has(b:text-is('tester'))")).to_contain_text("working")
    let_go(bridge.data_dir, "go")
    window.settled()

    for name in ("explore", "reviewer", "linter", "tester"):
        done = page.locator(f"summary:has(b:text-is('{name}')) .tick")
        expect(done.first).to_be_attached()
    again = visit().open(window.path)
    expect(again.page.locator("summary:has(b:text-is('builder'))")).to_contain_text("stopped")
    expect(again.log).to_contain_text("Tested.")
