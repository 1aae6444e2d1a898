"""Words to a working agent: into its turn, after it, or in its place."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.served import Site, let_go
from tests.support.window import PHONE


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"claude": demo(display_name="Claude", default=True, while_busy="steer")}


def test_words_go_into_the_turn_or_wait_as_the_person_chooses(
    visit: Visiting, bridge: Site
) -> None:
    window = visit().open()
    page = window.page
    when = page.locator("#when")
    expect(when).to_have_count(0)
    window.say("say begun\nhold go")
    expect(window.turns.first).to_contain_text("begun")
    expect(when).to_be_visible()

    window.say("say turn left")
    expect(window.log).to_contain_text("Taken into the running turn: “say turn left”")
    when.select_option("queue")
    window.say("say later")
    expect(window.waiting).to_contain_text("Queued for Claude's next turn")
    assert window.findings() == []
    window.picture("steering")
    phone = visit(size=PHONE).open(window.path)
    expect(phone.page.locator("#when")).to_be_visible()
    assert phone.findings() == []
    phone.picture("steering-phone")

    let_go(bridge.data_dir, "go")
    expect(window.turns).to_have_count(2)
    expect(window.turns.first).to_contain_text("turn left")
    expect(window.turns.last).to_contain_text("later")
    window.settled()
    expect(when).to_be_hidden()
