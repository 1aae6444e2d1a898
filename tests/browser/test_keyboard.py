"""The page by keyboard alone: palette, commands, asks, help, and a focus that is never lost."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.plays import call, player, put, text
from tests.support.served import Site, let_go
from tests.support.window import PHONE, Visit

ZOOMED = (320, 200)
"""What is left of 1280 x 800 at 400 %."""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    ask = call(1, "Write notes.md", "edit", status="pending")
    asked = {name: value for name, value in ask.items() if name != "sessionUpdate"}
    second = {**asked, "toolCallId": "second", "title": "Write more.md"}
    put(folder, "notes", [{"ask": asked}, {"ask": second}, text("All is written.")])
    commands = [{"name": "compact", "description": "Shorten the conversation"}]
    offer = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
    put(folder, "offers", [offer, text("There are commands.")])
    return {
        "claude": player(folder, display_name="Claude", default=True),
        "codex": player(folder, display_name="Codex"),
    }


@pytest.mark.slow
def test_from_the_log_in_to_an_answered_ask_and_a_finished_turn(
    browser: Browser, bridge: Site
) -> None:
    with closing(Visit(browser, bridge.url)) as person:
        window = person.open(bridge.new_link())
        page, press = window.page, window.page.keyboard.press
        expect(window.button("Sign in")).to_be_focused()
        press("Enter")
        page.wait_for_url("**/")
        expect(page.get_by_label("Message", exact=True)).to_be_focused()

        page.keyboard.type("@co")
        press("Tab")
        page.keyboard.type("write notes")
        press("Enter")
        page.wait_for_url("**/t/web/*")
        expect(window.button("Reject")).to_be_visible()
        press("Escape")
        press("a")
        expect(window.button("Allow once")).to_be_focused()
        window.picture("ask-focused")
        press("1")

        expect(page.locator(".ask:not(.closed)")).to_contain_text("more.md")
        assert page.evaluate("document.activeElement.tagName") != "BODY"
        press("Escape")
        press("a")
        expect(window.button("Allow once")).to_be_focused()
        press("3")
        expect(window.turns).to_contain_text("All is written.")
        window.settled()
        expect(page.get_by_label("Message", exact=True)).to_be_focused()


@pytest.mark.slow
def test_the_palette_goes_to_threads_agents_and_commands(visit: Visiting) -> None:
    window = visit().open()
    page, press = window.page, window.page.keyboard.press
    window.say("say a pelican on the pier")
    window.settled()
    path = window.path

    press("Control+k")
    box = page.get_by_role("combobox", name="Go to a thread")
    expect(box).to_be_focused()
    window.picture("palette")
    assert window.findings() == []
    page.keyboard.type("with cod")
    expect(page.locator("#palette [aria-selected=true]")).to_have_text("New thread with Codex")
    press("Enter")
    page.wait_for_url("**/?to=codex")
    expect(page.locator("#to")).to_have_value("codex")

    press("Control+k")
    page.keyboard.type("pelican")
    expect(page.locator("#palette [aria-selected=true]")).to_contain_text("say a pelican")
    expect(page.locator("#palette [role=option]")).to_have_count(1)
    press("Enter")
    page.wait_for_url(f"**{path}")

    press("Control+k")
    page.keyboard.type("dark theme")
    press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 21)"
    press("Control+k")
    page.keyboard.type("nothing like this")
    expect(page.locator("#palette-none")).to_be_visible()
    press("Escape")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


@pytest.mark.slow
def test_commands_of_the_bridge_and_of_the_agent_are_offered_after_a_slash(
    visit: Visiting,
) -> None:
    window = visit().open()
    page, press = window.page, window.page.keyboard.press
    window.say("@claude offers")
    window.settled()
    box = page.get_by_label("Message", exact=True)

    box.focus()
    page.keyboard.type("/")
    expect(page.locator("#commands [role=option]").first).to_have_text(
        "/compactClaude · Shorten the conversation"
    )
    window.picture("commands")
    assert window.findings() == []
    page.keyboard.type("co")
    press("Tab")
    expect(box).to_have_value("/compact ")
    page.keyboard.type("now")
    press("Enter")
    expect(window.turns.last).to_contain_text("/compact now")
    window.settled()

    page.keyboard.type("/sta")
    press("Enter")
    expect(window.log).to_contain_text("Claude: ready")
    expect(box).to_have_value("")


@pytest.mark.slow
def test_names_of_workspace_files_are_offered_after_a_hash_and_after_at_slash(
    visit: Visiting, bridge: Site
) -> None:
    window = visit().open()
    page, press = window.page, window.page.keyboard.press
    window.say("@claude say hello")
    window.settled()
    for name in ("walrus.py", "walnut.md"):
        let_go(bridge.data_dir, name)
    box, offered = page.get_by_label("Message", exact=True), page.locator("#commands li")

    box.focus()
    page.keyboard.type("compare #walr")
    expect(offered).to_have_text(["walrus.py"])
    window.picture("file-names")
    assert window.findings() == []
    press("Enter")
    expect(box).to_have_value("compare walrus.py ")
    page.keyboard.type("with @/WAL")
    expect(offered).to_have_text(["walnut.md", "walrus.py"])
    press("Tab")
    expect(box).to_have_value("compare walrus.py with walnut.md ")
    page.keyboard.type("and #12")
    expect(offered.first).to_be_hidden()


@pytest.mark.slow
def test_a_mode_is_chosen_by_a_click(visit: Visiting) -> None:
    window = visit().open()
    window.say("@claude say hello")
    window.settled()
    mode = window.page.get_by_label("Mode of Claude")
    expect(mode).to_have_value("ask")

    mode.select_option("Free")
    window.page.get_by_label("Model of Claude").select_option("Macaw")
    expect(window.page.locator("#problem")).to_be_empty()
    window.say("write free.txt words")
    window.settled()

    expect(window.page.locator(".ask")).to_have_count(0)
    window.page.reload()
    expect(mode).to_have_value("free")
    expect(window.page.get_by_label("Model of Claude")).to_have_value("macaw")


@pytest.mark.slow
def test_help_shows_the_keys_and_single_keys_can_be_switched_off(visit: Visiting) -> None:
    window = visit().open()
    page, press = window.page, window.page.keyboard.press
    press("Escape")
    press("?")
    expect(page.get_by_role("dialog", name="Keys and settings")).to_be_visible()
    window.picture("help")
    assert window.findings() == []

    page.get_by_label("Shortcuts of a single key").focus()
    press("Space")
    press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.locator("#scroll").focus()
    press("/")
    press("?")
    press("m")

    expect(page.locator("#help")).to_be_hidden()
    expect(page.locator("#scroll")).to_be_focused()
    press("Control+k")
    expect(page.locator("#palette")).to_be_visible()


@pytest.mark.slow
def test_the_list_that_is_drawn_again_keeps_the_focus(visit: Visiting) -> None:
    window = visit().open()
    window.say("say first")
    window.settled()
    other = visit().open(window.path)
    link = window.page.locator("#threads .thread.on")
    link.focus()

    other.say("say something new")
    expect(window.turns.last).to_contain_text("something new")
    window.settled()
    expect(link).to_be_focused()


@pytest.mark.slow
def test_messages_are_headings_and_what_does_nothing_is_not_offered(visit: Visiting) -> None:
    person = visit()
    window = person.open()
    expect(window.button("Latest ↓")).to_be_hidden()
    window.page.set_viewport_size({"width": 640, "height": 260})
    window.page.locator("#scroll").evaluate("element => element.scrollTop = 0")
    expect(window.button("Latest ↓")).to_be_hidden()
    window.say("@claude say hello")
    window.settled()

    names = window.page.get_by_role("heading", level=3).all_inner_texts()
    assert names == ["operator", "Claude"]


@pytest.mark.slow
def test_the_box_leaves_room_at_four_hundred_percent(visit: Visiting) -> None:
    window = visit().open()
    window.say("say one\nsay two\nsay three")
    window.settled()
    window.page.set_viewport_size({"width": ZOOMED[0], "height": ZOOMED[1]})
    window.page.locator("#scroll").focus()
    window.picture("zoom-400")

    shown = window.evaluate("document.getElementById('scroll').clientHeight")
    assert shown > ZOOMED[1] / 2
    assert window.page.evaluate("document.documentElement.scrollWidth") == ZOOMED[0]


@pytest.mark.slow
def test_a_drawer_has_a_button_that_closes_it(visit: Visiting) -> None:
    window = visit(size=PHONE).open()
    for button, drawer in (("Threads", "#left"), ("Details", "#right")):
        window.button(button).click()
        close = window.page.locator(drawer).get_by_role("button", name="Close")
        expect(close).to_be_focused()
        close.click()
        expect(window.page.locator(drawer)).to_be_hidden()
        expect(window.button(button)).to_be_focused()
