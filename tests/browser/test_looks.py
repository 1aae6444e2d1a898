"""How the page looks: desktop and phone, light and dark, pictured, and open to everybody.

Pictures are left in `.screenshots/`; axe finds nothing serious on any of them.
"""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.plays import player, working_day
from tests.support.served import Site
from tests.support.window import DESKTOP, PHONE, Scheme, Visit, Window

LOOKS = pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(
            size,
            scheme,
            id=f"{name}-{scheme}",
            # Each size and each scheme is seen once wherever there is a browser.
            marks=[pytest.mark.slow] if (name == "phone") == (scheme == "light") else [],
        )
        for name, size in (("desktop", DESKTOP), ("phone", PHONE))
        for scheme in ("light", "dark")
    ],
)

TALL = 1100
"""Enough for a plan, a change and a question in one picture."""
_CUT_OFF = """() => [...document.querySelectorAll(".tool > summary > em")]
  .filter(element => element.scrollWidth > element.clientWidth).map(element => element.innerText)"""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    working_day(folder)
    return {
        "claude": player(folder, display_name="Claude", default=True, description="Writes code"),
        "codex": player(folder, display_name="Codex", description="Reviews code"),
    }


@pytest.fixture(scope="module")
def thread(browser: Browser, bridge: Site) -> str:
    """Play a thread with all there is: answers, a plan, a change, a question, what waits."""
    with closing(Visit(browser, bridge.url)) as visit:
        visit.sign_in(bridge.new_link())
        visit.send("@codex What has changed in 2.3?")
        visit.send("@codex watch the retry storm in payments")
        thread = visit.send("@codex Where do people lose their page after login?")
        window = visit.open(thread)
        expect(window.turns).to_contain_text("The target is lost")
        visit.send("@claude Please fix what Codex found, with a test.", thread)
        expect(window.button("Allow once")).to_be_visible()
        visit.send("And what do you think?", thread)
        visit.send("@claude Also log the refused targets.", thread)
        return thread


@pytest.mark.slow
@LOOKS
def test_every_view_is_pictured_and_open_to_everybody(
    browser: Browser,
    bridge: Site,
    visit: Visiting,
    thread: str,
    size: tuple[int, int],
    scheme: Scheme,
    request: pytest.FixtureRequest,
) -> None:
    look = request.node.callspec.id

    def seen(window: Window, name: str) -> None:
        window.picture(f"{look}-{name}")
        assert window.findings() == []

    with closing(Visit(browser, bridge.url, size, scheme, forgiven=("401",))) as stranger:
        seen(stranger.open(), "log-in")
    person = visit(size=size, scheme=scheme)
    seen(person.open(), "new-thread")
    window = person.open(thread)
    expect(window.page.locator("#status .waiting")).to_be_visible()
    seen(window, "thread-end")
    window.page.locator("#scroll").evaluate("element => element.scrollTop = 0")
    window.picture(f"{look}-thread-begin")
    assert window.page.evaluate("document.documentElement.scrollWidth") == size[0]
    assert window.page.evaluate(_CUT_OFF) == []
    window.page.set_viewport_size({"width": size[0], "height": TALL})
    window.button("Latest ↓").click()
    window.picture(f"{look}-thread-tall")


@pytest.mark.slow
def test_the_drawers_of_a_phone_open_and_close(visit: Visiting, thread: str) -> None:
    window = visit(size=PHONE).open(thread)

    for button, drawer in (("Threads", "#left"), ("Details", "#right")):
        expect(window.page.locator(drawer)).to_be_hidden()
        window.button(button).click()
        expect(window.page.locator(drawer)).to_be_in_viewport(ratio=1)
        window.picture(f"phone-light-{button.lower()}")
        assert window.findings() == []
        window.page.keyboard.press("Escape")
        expect(window.page.locator(drawer)).to_be_hidden()
        expect(window.button(button)).to_be_focused()


@pytest.mark.slow
def test_a_serious_fault_would_be_found(visit: Visiting) -> None:
    window = visit().open()

    window.page.locator("#new").evaluate("element => element.style.color = '#ccc'")

    assert [each.partition(":")[0] for each in window.findings()] == ["color-contrast"]
