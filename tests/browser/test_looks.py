"""How the page looks: desktop and phone, light and dark, pictured, and open to everybody.

Pictures are left in `.screenshots/`; axe finds nothing serious on any of them.
"""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.plays import player, put, work
from tests.support.served import Site
from tests.support.window import DESKTOP, PHONE, Scheme, Visit, Window

LOOKS = pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(size, scheme, id=f"{name}-{scheme}")
        for name, size in (("desktop", DESKTOP), ("phone", PHONE))
        for scheme in ("light", "dark")
    ],
)

FIX = (
    "@claude after login people land on `/` instead of the page they came from. Please fix it, "
    "with a test.\nplay work"
)
_CUT_OFF = """() => [...document.querySelectorAll(".tool > summary > em")]
  .filter(element => element.scrollWidth > element.clientWidth).map(element => element.innerText)"""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    put(folder, "work", work())
    return {
        "claude": player(folder, display_name="Claude", default=True, description="Writes code"),
        "codex": player(folder, display_name="Codex", description="Reviews code"),
    }


@pytest.fixture(scope="module")
def thread(browser: Browser, bridge: Site) -> str:
    """Play a thread with all there is: answers, a plan, a change, a question, what waits."""
    with closing(Visit(browser, bridge.url)) as visit:
        visit.sign_in(bridge.new_link())
        visit.send("@codex say An earlier thread, long answered.")
        visit.send("@codex hold forever\nin another thread")
        thread = visit.send("@codex Please review: people land on `/` after login.")
        visit.send(FIX, thread)
        window = visit.open(thread)
        expect(window.button("Allow once")).to_be_visible()
        visit.send("and what do you think?", thread)
        visit.send("@claude also log the refused targets", thread)
        return thread


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


def test_a_serious_fault_would_be_found(visit: Visiting) -> None:
    window = visit().open()

    window.page.locator("#new").evaluate("element => element.style.color = '#ccc'")

    assert [each.partition(":")[0] for each in window.findings()] == ["color-contrast"]
