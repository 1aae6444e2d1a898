"""What became of a message, searched on the page, and the level of service, wide and narrow."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.window import PHONE

WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
SIZES = {"1440": (1440, 900), "390": PHONE}


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"claude": demo(display_name="Claude", default=True)}


@pytest.mark.parametrize("size", list(SIZES))
def test_people_search_a_message_and_see_how_good_the_service_is(
    visit: Visiting, size: str
) -> None:
    seen = visit(size=SIZES[size])
    window = seen.open()
    window.say("say it is done")
    expect(window.turns).to_contain_text("it is done")
    window.settled()
    thread = window.path
    window = seen.open("/outcomes")
    page = window.page
    page.get_by_label("Message", exact=True).fill(page.url.replace("/outcomes", thread))
    page.get_by_role("button", name="Find out").click()

    expect(page.locator("#found")).to_contain_text("Claude answered it.")
    expect(page.locator("#found tbody tr")).to_have_count(5)
    expect(page.locator("#days")).to_contain_text("answered")
    window.picture(f"outcomes-{size}")
    assert window.findings() == []
    assert window.evaluate(WIDTHS) == [SIZES[size][0]] * 2
    page.get_by_label("Message", exact=True).fill("https://example.com/nothing")
    page.get_by_role("button", name="Find out").click()
    expect(page.locator("#found")).to_contain_text("knows no such message")
    expect(page.locator("#found")).to_contain_text("What to do:")
