"""A page that was reloaded, doubled or cut off is as right as one that is opened afresh."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from app.server.page.view.steps import STEPS
from tests.browser.conftest import Agents, Visiting
from tests.support.platform import Platform
from tests.support.plays import many, player, put
from tests.support.served import Forked, Site, let_go
from tests.support.window import Visit, Window

CALLS = 150
# What is sent arrives, and its answer does not.
DEAF = """() => {
  window.whole = window.fetch;
  window.fetch = async (...request) => {
    const answer = await window.whole(...request);
    if (request[0] === "/send") throw new TypeError("Failed to fetch");
    return answer;
  };
}"""
STORY = "\n".join(
    ["plan look; change; test", "say # A *heading*", "thoughts 3", "tools 3", "chunk in pieces"]
)


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    put(folder, "many", many(CALLS))
    return {"demo": player(folder, display_name="Demo")}


def assert_equal(stayed: Window, visit: Visit) -> None:
    """Compare a page that stayed open with one that is opened now, both at rest."""
    stayed.settled()
    fresh = visit.open(stayed.path)
    fresh.settled()
    assert stayed.shown() == fresh.shown()


@pytest.mark.slow
def test_a_page_that_saw_it_all_shows_what_a_fresh_one_shows(visit: Visiting) -> None:
    person = visit()
    window = person.open()

    window.say(STORY)

    expect(window.turns).to_contain_text("in pieces")
    assert_equal(window, person)


@pytest.mark.slow
def test_a_long_thread_opens_at_its_end_and_is_all_there(visit: Visiting) -> None:
    person = visit()
    window = person.open()
    window.say("do many things\nsay that was all")
    expect(window.turns).to_contain_text("that was all")
    assert_equal(window, person)

    fresh = person.open(window.path)
    expect(fresh.page.get_by_text("that was all", exact=True).last).to_be_in_viewport()
    fresh.page.locator("#scroll").evaluate("element => element.scrollTop = 0")
    fresh.page.get_by_role("link", name=f"Show {CALLS - STEPS} earlier steps").click()
    expect(fresh.page.locator(".tool").first).to_contain_text("Run step 1")
    expect(fresh.page.locator(".tool").first).to_be_in_viewport()
    expect(fresh.page.locator(".tool")).to_have_count(CALLS)
    fresh.button("Latest ↓").click()

    expect(fresh.page.get_by_text("that was all", exact=True).last).to_be_in_viewport()
    expect(fresh.button("Latest ↓")).to_be_hidden()


@pytest.mark.slow
def test_a_reload_in_the_middle_of_a_stream_loses_nothing(bridge: Site, visit: Visiting) -> None:
    person = visit()
    window = person.open()
    window.say("say before it\nhold reload\nchunk after it, letter by letter")
    expect(window.turns).to_contain_text("before it")

    window.page.reload()
    expect(window.turns).to_contain_text("before it")
    expect(window.button("Stop")).to_be_visible()
    let_go(bridge.data_dir, "reload")

    expect(window.turns).to_contain_text("after it, letter by letter")
    expect(window.turns).to_have_count(1)
    assert_equal(window, person)


@pytest.mark.slow
def test_two_windows_on_one_thread_show_the_same(bridge: Site, visit: Visiting) -> None:
    person = visit()
    one = person.open()
    one.say("hold both\nsay done")
    expect(one.turns).to_have_count(1)
    other = person.open(one.path)
    expect(other.turns).to_have_count(1)

    other.say("say from the other window")
    expect(one.waiting).to_contain_text("say from the other window")
    expect(other.waiting).to_contain_text("say from the other window")
    let_go(bridge.data_dir, "both")

    for window in (one, other):
        expect(window.turns).to_have_count(2)
        expect(window.turns.last).to_contain_text("from the other window")
        window.settled()
    assert one.shown() == other.shown()
    assert_equal(one, person)


@pytest.mark.long
def test_a_page_comes_back_by_itself_after_the_bridge_was_killed(
    browser: Browser, agents: Agents, tmp_path: Path
) -> None:
    with (
        Platform() as platform,
        Forked(tmp_path, platform, agents) as bridge,
        # Requests that nobody answers are errors of the console, and what this story is about.
        closing(Visit(browser, bridge.url, forgiven=("net::ERR_",))) as person,
    ):
        window = person.sign_in(bridge.new_link())
        window.say("say before the crash\nhold crash\nsay after the crash")
        expect(window.turns).to_contain_text("before the crash")
        window.write("a draft")

        bridge.kill()
        expect(window.page.locator("#connection")).to_have_text("Connection lost. Reconnecting …")
        bridge.start()
        expect(window.page.locator("#connection")).to_be_hidden()
        expect(window.log).to_contain_text(
            "The bridge restarted; Demo is picking up where it left off."
        )
        let_go(bridge.data_dir, "crash")

        expect(window.turns.last).to_contain_text("after the crash")
        expect(window.page.get_by_label("Message", exact=True)).to_have_value("a draft")
        assert_equal(window, person)
        window.say("say all is well")
        expect(window.turns.last).to_contain_text("all is well")
        assert_equal(window, person)


@pytest.mark.slow
def test_what_is_sent_while_the_bridge_is_away_arrives_once_when_it_is_back(
    browser: Browser, agents: Agents, tmp_path: Path
) -> None:
    with (
        Platform() as platform,
        Forked(tmp_path, platform, agents) as bridge,
        closing(Visit(browser, bridge.url, forgiven=("net::ERR_", "502"))) as person,
    ):
        window = person.sign_in(bridge.new_link())
        page = window.page
        window.say("say before the crash\nhold gone\nsay never said")
        expect(window.turns).to_contain_text("before the crash")
        elsewhere = person.open("/")

        # The bridge takes this one, and the page never hears of it.
        page.evaluate(DEAF)
        window.write("say taken once")
        page.keyboard.press("Enter")
        kept = page.locator("#kept")
        expect(kept).to_contain_text("It will be sent when the bridge is back.")
        expect(window.waiting).to_contain_text("say taken once")
        bridge.kill()
        page.evaluate("() => { window.fetch = window.whole; }")
        expect(page.locator("#connection")).to_be_visible()

        window.drop(notes_txt="read me")
        window.write("say sent while away")
        page.keyboard.press("Enter")
        expect(kept.locator(".kept")).to_have_count(2)
        window.button("Stop").click()
        expect(kept).to_contain_text("Not stopped yet: no connection.")
        expect(page.locator("#problem")).to_be_empty()
        assert (
            page.locator(".dot.work").first.evaluate("e => getComputedStyle(e).animationName")
            == "none"
        )
        window.picture("away")
        assert window.findings() == []
        elsewhere.write("say begun while away")
        elsewhere.page.keyboard.press("Enter")
        expect(elsewhere.page.locator("#kept")).to_contain_text("say begun while away")

        bridge.start()
        elsewhere.page.wait_for_url("**/t/web/*")
        expect(elsewhere.turns).to_contain_text("begun while away")
        expect(kept).to_be_empty()
        expect(window.log).to_contain_text("say sent while away")
        expect(window.log).to_contain_text("notes.txt")
        window.button("Send now").click()
        expect(window.turns.last).to_contain_text("sent while away")
        window.settled()
        said = window.log.inner_text()
        assert (said.count("say taken once"), said.count("say sent while away")) == (1, 1), said
        assert "never said\n" not in said.partition("say never said")[2]
