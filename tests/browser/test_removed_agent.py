"""What people see of a conversation when its agent is gone, and of all of them in the list."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import demo
from tests.support.served import Forked


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"demo": demo(display_name="Demo", emoji="\N{OWL}", default=True)}


def test_a_thread_whose_agent_was_removed_says_so_at_once_and_takes_another(
    bridge: Forked, visit: Visiting
) -> None:
    bridge.http.post("/api/v1/agents", json={"name": "aide", "display_name": "Helper", **demo()})
    window = visit().open()
    window.say("@aide say hello from the helper")
    expect(window.turns).to_contain_text("hello from the helper")
    window.settled()
    bridge.http.delete("/api/v1/agents/aide").raise_for_status()

    window.page.reload()
    expect(window.page.locator("#gone")).to_have_text(
        "Helper was removed and cannot answer. To go on, choose another agent below."
    )
    expect(window.page.get_by_label("Message", exact=True)).to_be_disabled()
    expect(window.button("Send")).to_be_disabled()
    expect(window.turns).to_contain_text("Helper (removed)")
    assert "aide (removed)" not in window.page.content()
    line = window.page.locator("#threads .thread").first
    expect(line).to_contain_text("Helper (removed)")
    (found,) = bridge.http.get("/api/v1/conversations").json()["items"]
    assert [(each["agent"], each["state"]) for each in found["sessions"]] == [("aide", "removed")]

    window.page.locator("#to").select_option("demo")
    window.say("say taken over")
    expect(window.turns.last).to_contain_text("taken over")
    expect(window.page.locator("#gone")).to_have_count(0)


def test_the_list_shows_pictures_and_last_words_and_the_head_the_name(
    bridge: Forked, visit: Visiting
) -> None:
    window = visit().open()
    window.say("@demo say the last words are these")
    window.settled()
    line = window.page.locator(f"#threads .thread[href='{window.path}']")

    expect(line.locator(".face")).to_have_text("\N{OWL}")
    expect(line.locator(".said")).to_contain_text("the last words are these")
    expect(window.page.locator("#state .where")).to_contain_text("\N{OWL} Demo")
    listed = bridge.http.get("/api/v1/conversations").json()["items"]
    said = {each["path"]: each["last"] for each in listed}
    assert "the last words are these" in said[window.path]
    window.picture("list-with-last-words")


def test_pins_come_first_in_the_order_of_pinning_on_the_page_and_in_the_api(
    bridge: Forked, visit: Visiting
) -> None:
    window = visit().open()
    paths = []
    for number in range(3):
        window.page.goto("/")
        window.say(f"@demo say number {number}")
        window.settled()
        paths.append(window.path)
    listed = {each["path"]: each["id"] for each in conversations(bridge)}

    for number in (1, 0):
        pinned = bridge.http.patch(
            f"/api/v1/conversations/{listed[paths[number]]}", json={"pinned": True}
        )
        pinned.raise_for_status()
    window.page.goto(paths[0])
    window.say("say used again")
    window.settled()

    first = [each["path"] for each in conversations(bridge)][:2]
    window.page.goto("/")
    shown = window.page.locator("h2.group", has_text="Pinned").locator("+ ul .thread")
    expect(shown).to_have_count(2)
    assert first == [paths[1], paths[0]]
    assert [each.get_attribute("href") for each in shown.all()] == first


def conversations(bridge: Forked) -> list[dict[str, str]]:
    items: list[dict[str, str]] = bridge.http.get("/api/v1/conversations").json()["items"]
    return items
