"""Conversations that people manage on the page, with and without a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Agents, Visiting
from tests.support import canary
from tests.support.bridge import demo
from tests.support.served import Forked
from tests.support.window import PHONE, Window

TITLE = "Birds of the reeds"


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"claude": demo(display_name="Claude"), "codex": demo(display_name="Codex")}


def line(window: Window, path: str) -> Locator:
    return window.page.locator(f'#threads .thread[href="{path}"]')


def choose(window: Window, name: str) -> None:
    """Choose something from the menu of a thread, by keyboard alone."""
    window.page.locator("#manage > summary").press("Enter")
    window.page.locator("#manage .actions").get_by_text(name, exact=True).press("Enter")


def begin(window: Window, text: str, answer: str) -> str:
    """Begin a thread; returns its path."""
    window.say(text)
    expect(window.turns.last).to_contain_text(answer)
    window.settled()
    return window.path


@pytest.mark.long
def test_a_thread_is_renamed_pinned_archived_found_and_exported(
    visit: Visiting, tmp_path: Path
) -> None:
    person = visit()
    window = person.open("/?to=codex")
    path = begin(window, "say heron", "heron")

    choose(window, "Rename…")
    expect(window.page.get_by_role("heading", level=1)).to_have_text("Manage thread")
    assert window.findings() == []
    window.page.get_by_label("Title", exact=True).fill(TITLE)
    window.page.get_by_label("Title", exact=True).press("Enter")
    expect(window.page.locator("#state h1")).to_have_text(TITLE)
    expect(line(window, path)).to_contain_text(TITLE)

    # A new thread that is begun here goes to the agent of this one.
    window.page.locator("#new").click()
    expect(window.page.locator("#to")).to_have_value("codex")
    window.page.goto(path)

    choose(window, "Pin to the top")
    expect(window.page.locator("#threads .group").first).to_have_text("Pinned")
    window.page.get_by_role("link", name="By agent", exact=True).click()
    expect(window.page.locator("#threads .group").first).to_have_text("Pinned")
    choose(window, "Unpin")
    expect(window.page.locator("#threads .group")).to_have_text(["Codex"])
    window.page.get_by_role("link", name="By day", exact=True).click()

    window.page.locator("#manage > summary").press("Enter")
    window.page.locator("#manage a").first.press("Escape")
    expect(window.page.locator("#manage .actions")).to_be_hidden()
    expect(window.page.locator("#manage > summary")).to_be_focused()
    for name, ending in (("Export as Markdown", "md"), ("Export as JSON", "json")):
        with window.page.expect_download() as caught:
            choose(window, name)
        caught.value.save_as(tmp_path / ending)
        window.page.reload()
        assert caught.value.suggested_filename == f"Birds-of-the-reeds.{ending}"
    assert "## Codex · " in (tmp_path / "md").read_text()
    rows = json.loads((tmp_path / "json").read_text())["transcript"]
    assert [row["text"] for row in rows if row["kind"] in {"message", "text"}] == [
        "say heron",
        "heron",
    ]

    choose(window, "Archive")
    window.page.wait_for_url("**/")
    expect(line(window, path)).to_have_count(0)
    window.page.get_by_label("Search threads").fill("reeds")
    expect(window.page.locator("#found .thread")).to_contain_text([TITLE])
    window.page.get_by_role("link", name="Archived", exact=True).click()
    expect(window.page.locator("#found .thread")).to_have_attribute("href", path)
    window.page.locator("#found .thread").click()
    window.say("say again")
    expect(window.turns.last).to_contain_text("again")
    expect(line(window, path)).to_have_count(1)


@pytest.mark.long
def test_a_thread_is_forked_cleared_and_deleted_without_a_trace(
    visit: Visiting, bridge: Forked
) -> None:
    word = "kingfisher-canary"
    window = visit().open("/?to=claude")
    path = begin(window, f"say {word}", word)
    begin(window, "say later", "later")

    window.page.get_by_label("Fork after this answer").first.click()
    expect(window.page.locator("main")).to_contain_text(word)
    assert window.findings() == []
    window.button("Fork").click()
    window.page.wait_for_url("**/t/web/*")
    forked = window.path
    assert forked != path
    expect(window.log).to_contain_text("Claude continues from the transcript")
    expect(window.turns).to_have_count(1)
    assert "later" not in window.log.inner_text()
    begin(window, "say on", "on")

    choose(window, "Clear…")
    window.button("Clear the thread").click()
    expect(window.log).to_contain_text("cleared this conversation")
    expect(window.log.locator("article")).to_have_count(0)

    for each in (forked, path):
        window.page.goto(each)
        choose(window, "Delete…")
        expect(window.page.get_by_role("heading", level=1)).to_have_text("Delete this thread?")
        assert window.findings() == []
        window.button("Delete the thread").click()
        window.page.wait_for_url("**/")
        expect(line(window, each)).to_have_count(0)

    assert canary.find(bridge.data_dir, word) == []


@pytest.mark.slow
def test_everything_works_on_a_phone_without_a_script(visit: Visiting, bridge: Forked) -> None:
    word = "bittern-canary"
    path = begin(visit().open("/"), f"say {word}", word)
    window = visit(scripts=False, size=PHONE).open(path)

    window.page.locator("#manage > summary").click()
    window.page.locator("#manage").get_by_text("Rename…").click()
    window.page.get_by_label("Title", exact=True).fill("Small screen")
    window.button("Rename").click()
    expect(window.page.locator("#state h1")).to_have_text("Small screen")
    window.page.goto(f"/manage{path}")
    assert window.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    window.page.get_by_role("link", name="Delete…").click()
    expect(window.page.locator("main")).to_contain_text("1 message and 1 turn")
    window.picture("delete-390-light")
    window.button("Delete the thread").click()

    assert canary.find(bridge.data_dir, word) == []
