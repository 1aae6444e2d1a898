"""The list of threads: what is new, who is needed, and what can be found in it."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.plays import call, player, put, text
from tests.support.served import Site, let_go
from tests.support.window import Visit, Window

ASKED = call(1, "Write notes.md", "edit", status="pending")
NOTIFIED = """() => {
  window.Notification = class extends EventTarget {
    static permission = "default";
    static async requestPermission() { return Notification.permission = "granted"; }
    constructor(title, more) {
      super();
      document.documentElement.dataset.notified = `${title}: ${more.body}`;
    }
  };
  Object.defineProperty(document, "hidden", { get: () => window.away === true });
}"""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    title = {"sessionUpdate": "session_info_update", "title": "## A *purple* heron"}
    put(folder, "heron", [title, text("## Section 1\n\nThe heron stands in the **reeds**.")])
    asked = {name: value for name, value in ASKED.items() if name != "sessionUpdate"}
    put(folder, "notes", [{"ask": asked}])
    return {"claude": player(folder, display_name="Claude")}


@pytest.fixture(scope="module")
def threads(browser: Browser, bridge: Site) -> dict[str, str]:
    """Play a thread of each kind."""
    with closing(Visit(browser, bridge.url)) as visit:
        visit.sign_in(bridge.new_link())
        said = {
            "done": "Please draw a heron",
            "wait": "Write notes",
            "fail": "fail",
            "plain": "```python\nprint(1)\n```\nWhat does this print?",
        }
        made = {name: visit.send(words) for name, words in said.items()}
        window = visit.open(made["done"])
        for mark in ("wait", "fail"):
            expect(window.page.locator(f"#threads .mark.{mark}")).to_have_count(1)
        return made


def line(window: Window, path: str) -> Locator:
    return window.page.locator(f'#threads .thread[href="{path}"]')


@pytest.mark.long
def test_a_thread_shows_its_state_its_title_and_its_time(
    visit: Visiting, threads: dict[str, str]
) -> None:
    window = visit().open(threads["done"])

    for name, words in (
        ("done", "Done: A purple heron"),
        ("wait", "Needs you: Write notes"),
        ("fail", "Failed: fail"),
        ("plain", "Done: What does this print?"),
    ):
        expect(line(window, threads[name]).locator("b")).to_contain_text(words)
    expect(window.page.locator("#state h1")).to_have_text("A purple heron")
    assert window.page.locator("#threads h2").all_inner_texts() == ["Needs you", "Today"]
    expect(window.page).to_have_title("(1) A purple heron · Agent Bridge")


@pytest.mark.slow
def test_times_count_and_days_change_in_the_browser(
    visit: Visiting, threads: dict[str, str]
) -> None:
    window = visit().open()
    window.page.clock.install()
    window.page.goto(threads["done"])
    time = line(window, threads["done"]).locator("time")
    expect(time).to_have_text("now")

    window.page.clock.fast_forward("05:00")
    expect(time).to_have_text("5m")
    window.page.clock.set_fixed_time(window.evaluate("Date.now() / 1000 + 50 * 3600"))
    window.page.reload()

    expect(time).to_have_text("2d")
    assert window.page.locator("#threads h2").all_inner_texts() == ["Needs you", "Older"]


@pytest.mark.long
def test_a_search_finds_titles_and_text_and_goes_there(
    visit: Visiting, threads: dict[str, str]
) -> None:
    window = visit().open()
    page = window.page
    page.keyboard.press("Escape")
    page.keyboard.press("/")

    page.keyboard.type("reeds HERON")
    found = page.locator("#found .thread")
    expect(found).to_have_count(1)
    expect(found.locator(".found")).to_have_text("Section 1 The heron stands in the reeds.")
    expect(found.locator("mark")).to_have_text("heron")
    expect(page.locator("#count")).to_have_text("1 thread found")
    expect(page.locator("#threads")).to_be_hidden()
    window.picture("search")
    assert window.findings() == []
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{threads['done']}")

    page.get_by_label("Search threads").fill("nowhere to be seen")
    expect(page.locator("#found h2")).to_have_text("No thread found")
    page.keyboard.press("Escape")
    expect(page.locator("#threads")).to_be_visible()


@pytest.mark.slow
def test_a_search_works_without_scripts(visit: Visiting, threads: dict[str, str]) -> None:
    page = visit(scripts=False).open().page

    page.get_by_label("Search threads").fill("reeds")
    page.keyboard.press("Enter")

    expect(page.locator("#found .thread")).to_have_attribute("href", threads["done"])


@pytest.mark.slow
def test_what_happened_since_is_new_until_it_is_seen(
    visit: Visiting, threads: dict[str, str]
) -> None:
    person = visit()
    window = person.open(threads["done"])
    other = person.open(threads["plain"])

    other.say("say more of it")
    other.settled()
    expect(line(window, threads["plain"])).not_to_have_class("thread fresh")
    other.page.close()
    elsewhere = visit().open(threads["plain"])
    elsewhere.say("say and once more")
    elsewhere.settled()

    expect(line(window, threads["plain"])).to_have_class("thread fresh")
    expect(line(window, threads["plain"]).locator("b")).to_contain_text("New: Done: ")
    badge = window.page.locator("#icon").get_attribute("data-badge") or "?"
    assert (window.page.locator("#icon").get_attribute("href") or "").endswith(badge)
    line(window, threads["plain"]).click()
    window.page.wait_for_url(f"**{threads['plain']}")
    expect(line(window, threads["plain"])).to_have_class("thread on")


@pytest.mark.slow
def test_a_long_turn_offers_notifications_once_and_they_come(visit: Visiting, bridge: Site) -> None:
    person = visit()
    person.context.add_init_script(f"({NOTIFIED})()")
    window = person.open()
    page = window.page
    window.say("hold first")
    page.clock.install()
    expect(page.locator(".thread.on .mark")).to_have_class("mark work")
    page.clock.fast_forward("00:45")
    let_go(bridge.data_dir, "first")
    expect(page.locator("#notify")).to_be_visible()
    window.picture("notify")
    assert window.findings() == []

    window.button("Notify me").click()
    expect(page.locator("#notify")).to_be_hidden()
    page.evaluate("window.away = true")
    window.say("hold second")
    expect(page.locator(".thread.on .mark")).to_have_class("mark work")
    let_go(bridge.data_dir, "second")

    told = "hold first: Claude is done"
    expect(page.locator("html")).to_have_attribute("data-notified", told)


@pytest.mark.slow
def test_head_and_foot_stay_while_the_list_scrolls(
    visit: Visiting, threads: dict[str, str]
) -> None:
    window = visit(size=(1280, 330)).open(threads["done"])
    window.page.locator("#threads").evaluate("element => element.scrollTop = 9999")

    expect(window.page.locator("#new")).to_be_in_viewport(ratio=1)
    expect(window.page.locator("#sign-out")).to_be_in_viewport(ratio=1)
