"""Agents found on PATH: the page says so, isolates one with a click, and says what changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Visiting
from tests.support.found import install
from tests.support.platform import Platform
from tests.support.served import PLAIN_PATH, Forked
from tests.support.window import PHONE

BROKEN = '#!/bin/sh\n[ -e {flag} ] && exec /usr/bin/bwrap "$@"\necho it is broken >&2\nexit 1\n'
GAINED = "Before: not isolated, your home, this machine's network. Now: isolated (bubblewrap)"
REFUSED = ("422",)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install two known agents, and a bubblewrap that does not work before it is repaired."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("opencode", "qwen"):
        install(folder, name)
    (folder / "bwrap").write_text(BROKEN.format(flag=folder / "repaired"))
    (folder / "bwrap").chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def bridge(
    browser: Browser, programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Forked]:
    settings = {"AGENTS_JSON": "", "PATH": f"{programs}:{PLAIN_PATH}"}
    folder = tmp_path_factory.mktemp("bridge")
    with Platform() as platform, Forked(folder, platform, settings=settings) as it:
        yield it


def test_a_found_agent_is_isolated_with_one_click_and_its_thread_goes_on(
    programs: Path, visit: Visiting
) -> None:
    window = visit(size=(1440, 900), forgiven=REFUSED).open("/")
    page = window.page
    window.say("@opencode say before")
    expect(window.turns.last).to_contain_text("before")
    window.settled()
    thread = window.path
    page.goto("/agents")
    card = page.get_by_role("article", name="opencode")
    expect(card).to_contain_text("found on PATH")
    expect(card).to_contain_text("not isolated")
    expect(page.locator("main")).not_to_contain_text("settings")
    window.picture("found-1440-cards")

    # What cannot be isolated now is left as it is, and the page says why.
    card.get_by_role("button", name="Isolate it").click()
    expect(card).to_contain_text("cannot be isolated here: bubblewrap does not work here")
    card.get_by_role("link", name="View opencode").click()
    expect(page.locator("main")).not_to_contain_text("AGENTS_JSON")
    window.picture("found-1440-before")

    (programs / "repaired").touch()
    window.button("Isolate it opencode").click()

    expect(page.locator("#isolation")).to_contain_text(GAINED)
    expect(page.locator("#head")).to_contain_text("isolated")
    expect(page.get_by_label("Display name")).to_be_visible()
    expect(page.get_by_text("found on PATH")).to_have_count(0)
    window.picture("found-1440-after")
    window.button("Got it").click()
    expect(page.locator("#isolation")).not_to_contain_text("Its isolation changed")
    assert window.findings() == []
    page.goto(thread)
    window.say("say after")
    expect(window.turns.last).to_contain_text("after")


@pytest.mark.long
def test_a_found_agent_is_isolated_with_the_keyboard_without_a_script_on_a_phone(
    programs: Path, bridge: Forked, visit: Visiting
) -> None:
    (programs / "repaired").touch()
    window = visit(scripts=False, size=PHONE, forgiven=REFUSED).open("/agents/qwen")
    page = window.page
    window.picture("found-390-before")
    window.button("Isolate it Qwen Code").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#isolation")).to_contain_text(GAINED)
    expect(page.get_by_text("found on PATH")).to_have_count(0)
    window.picture("found-390-after")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]

    # Its entry is removed: the program is found again, and the page says first what that means.
    assert bridge.http.delete("/api/v1/agents/qwen").status_code == 204
    page.goto("/")
    expect(page.locator("#paused")).to_contain_text("Now: not isolated, your home")
    window.picture("found-390-lost")
    page.get_by_role("link", name="Look at it").click()
    expect(page.locator("main")).to_contain_text("found on PATH")
    window.button("Got it").click()
    page.goto("/")
    expect(page.locator("#paused")).not_to_contain_text("isolation")
