"""The record on the page: from an answer to who asked and who allowed, and found by a person."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.window import PHONE


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"claude": demo(display_name="Claude", default=True)}


@pytest.mark.parametrize(
    ("size", "scheme"),
    [((1440, 900), "light"), pytest.param(PHONE, "dark", marks=pytest.mark.long)],
)
def test_the_record_of_an_answer_names_who_asked_and_who_allowed(
    visit: Visiting, size: tuple[int, int], scheme: str
) -> None:
    window = visit(size=size, scheme=scheme).open()
    page = window.page
    window.say("run echo over-the-hills")
    window.button("Allow once").click()
    window.settled()

    window.turns.last.get_by_role("link", name="record").click()
    rows = page.locator("ol.record > li")
    expect(rows.filter(has_text="Tool")).to_contain_text("echo over-the-hills")
    expect(rows.filter(has_text="Decision")).to_contain_text("Decided by operator")
    expect(rows.filter(has_text="Decision")).to_contain_text("Asked by operator")
    window.picture(f"record-{size[0]}-{scheme}")
    assert window.findings() == []

    page.get_by_label("Person").fill("nobody")
    page.get_by_label("Turn").fill("")
    page.get_by_role("button", name="Find").click()
    expect(page.locator("#content")).to_contain_text("Nothing is recorded of that.")
    page.get_by_role("link", name="Show all").click()
    window.picture(f"record-all-{size[0]}-{scheme}")
    expect(rows.last).to_contain_text("The record begins.")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert window.findings() == []
