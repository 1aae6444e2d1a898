"""How the page looks: each view in three widths, light and dark, and zoomed, pictured and checked.

Pictures are left in `.screenshots/`; axe finds nothing serious on any of them, and none of them has
to be scrolled sideways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Agents, Visiting
from tests.scenarios.test_github_life import run
from tests.support.bridge import demo
from tests.support.github import Hub
from tests.support.platform import Platform
from tests.support.plays import player, working_day
from tests.support.served import Forked
from tests.support.typical import ASKED, FILES, WORDS, typical_agent
from tests.support.window import PHONE, Scheme, Visit, Window

pytestmark = pytest.mark.slow

SIZES = {"1440": (1440, 900), "768": (768, 1024), "390": PHONE}
ZOOMS = {"200": (720, 450), "400": (360, 225)}
"""What is left of 1440 x 900."""
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
_CUT_OFF = """() => [...document.querySelectorAll(".tool > summary > em")]
  .filter(element => element.scrollWidth > element.clientWidth).map(element => element.innerText)"""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    working_day(folder / "day")
    typical = typical_agent(folder / "typical", hold=".git/go", default=True)
    return {
        "claude": {**typical, "description": "Writes code"},
        "codex": player(
            folder / "day", display_name="Codex", description="Reviews code", while_busy="queue"
        ),
        "gemini": demo("no-such-gemini", display_name="Gemini"),
    }


@pytest.fixture(scope="module")
def hub(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Open a GitHub with a repository."""
    with Hub(tmp_path_factory.mktemp("hub"), ("claude",)) as hub:
        hub.github.git.commit("acme/widgets", "main", FILES, "Begin")
        yield hub


@pytest.fixture(scope="module")
def bridge(hub: Hub, agents: Agents, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """Start a bridge that has an App there."""
    folder = tmp_path_factory.mktemp("bridge")
    with (
        Platform() as platform,
        Forked(folder, platform, agents, settings=hub.settings) as bridge,
    ):
        hub.call(bridge)
        yield bridge


@dataclass
class Threads:
    """The paths of threads in every state."""

    done: str
    changes: str
    running: str
    asked: str
    failed: str
    mixed: str
    """With a table, a plan, a change, a question, and what waits."""


@pytest.fixture(scope="module")
def threads(browser: Browser, bridge: Forked, hub: Hub) -> Threads:
    """Play them."""
    with closing(Visit(browser, bridge.url)) as visit:
        visit.sign_in(bridge.new_link())
        done, changes = _done(visit, bridge, hub)
        running = _typical(visit)
        _allow(bridge, len(ASKED))
        failed = visit.send("@codex stderr 3\ncrash")
        mixed = visit.send("@codex Where do people lose their page after login?")
        window = visit.open(mixed)
        expect(window.turns).to_contain_text("The target is lost")
        visit.send("@codex Please fix what you found, with a test.", mixed)
        expect(window.button("Allow once")).to_be_visible()
        visit.send("@codex Also log the refused targets.", mixed)
        expect(window.waiting).to_be_visible()
        asked = _typical(visit)
        expect(visit.open(asked).button("Allow")).to_be_visible()
        return Threads(done, changes, running, asked, failed, mixed)


def _typical(visit: Visit) -> str:
    return visit.send(f"@claude {WORDS}", repository="acme/widgets")


def _done(visit: Visit, bridge: Forked, hub: Hub) -> tuple[str, str]:
    window = visit.open(_typical(visit))
    _allow(bridge, len(ASKED))
    (clone,) = bridge.data_dir.glob("workspaces/*/.git")
    (clone / "go").touch()
    window.settled()
    hub.github.check(hub.pulls()[0], run("tests"))
    expect(window.page.locator("#side")).to_contain_text("checks passed")
    link = window.page.locator("#side [data-single=c]")
    expect(link).to_have_text("2 files")
    return window.path, str(link.get_attribute("href"))


def _allow(bridge: Forked, times: int) -> None:
    def asks() -> list[dict[str, Any]]:
        found = bridge.http.get("/api/v1/asks", params={"state": "open"})
        return list(found.json()["items"])

    for _ in range(times):
        bridge.wait(lambda: bool(asks()), "nothing was asked")
        (ask,) = asks()
        answer = {"option": ask["options"][0]["id"]}
        bridge.http.post(f"/api/v1/asks/{ask['id']}/answer", json=answer).raise_for_status()


def _new(person: Visit, threads: Threads) -> Window:
    return person.open()


def _picker(person: Visit, threads: Threads) -> Window:
    window = person.open()
    window.button("Works in: No repository").click()
    expect(window.page.get_by_role("option", name="acme/widgets")).to_be_visible()
    return window


def _unable(person: Visit, threads: Threads) -> Window:
    window = person.open()
    window.page.locator("#to").select_option(label="Gemini (unavailable)")
    expect(window.page.locator("#unable")).to_contain_text("not found")
    return window


def _running(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.running)
    expect(window.page.locator("#status .busy")).to_contain_text("pytest -q")
    return window


def _asked(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.asked)
    expect(window.button("Allow")).to_be_visible()
    return window


def _finished(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.done)
    expect(window.page.locator(".outcome")).to_be_visible()
    return window


def _beginning(person: Visit, threads: Threads) -> Window:
    window = _finished(person, threads)
    window.page.locator("#scroll").evaluate("element => element.scrollTop = 0")
    return window


def _mixed(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.mixed)
    expect(window.waiting).to_be_visible()
    return window


def _changes(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.changes)
    expect(window.page.locator(".l.add").first).to_be_visible()
    return window


def _side_by_side(person: Visit, threads: Threads) -> Window:
    window = _changes(person, threads)
    window.page.keyboard.press("s")
    return window


def _files(person: Visit, threads: Threads) -> Window:
    return person.open(f"{threads.changes}/files/")


def _file(person: Visit, threads: Threads) -> Window:
    return person.open(f"{threads.changes}/files/app/auth/tokens.py")


def _failure(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.failed)
    expect(window.button("Try again")).to_be_visible()
    window.page.locator(".log-tail").evaluate("element => element.open = true")
    expect(window.page.locator(".failure pre")).to_be_visible()
    return window


def _away(person: Visit, threads: Threads) -> Window:
    person.context.route("**/events/**", lambda route: route.abort())
    window = person.open(threads.running)
    expect(window.page.locator("#connection")).to_be_visible()
    return window


def _search(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.failed)
    window.page.locator("#scroll").focus()
    window.page.keyboard.press("/")
    window.page.keyboard.type("tokens")
    expect(window.page.locator("#found .thread").first).to_be_visible()
    return window


def _palette(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.done)
    window.page.keyboard.press("Control+k")
    expect(window.page.locator("#palette [aria-selected=true]")).to_be_visible()
    return window


def _help(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.done)
    window.page.locator("#scroll").focus()
    window.page.keyboard.press("?")
    expect(window.page.get_by_role("dialog", name="Keys and settings")).to_be_visible()
    return window


def _agent(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.done)
    window.page.goto(f"{window.page.url.partition('/t/')[0]}/agents")
    window.page.locator(".agent-card h3 a").first.click()
    expect(window.page.get_by_role("link", name="Search its notes")).to_be_visible()
    return window


def _memory(person: Visit, threads: Threads) -> Window:
    window = _agent(person, threads)
    window.page.get_by_role("link", name="Search its notes").click()
    expect(window.page.get_by_role("searchbox")).to_be_visible()
    return window


def _schedules(person: Visit, threads: Threads) -> Window:
    window = person.open(threads.done)
    window.page.goto(f"{window.page.url.partition('/t/')[0]}/schedules")
    expect(window.page.get_by_role("button", name="Add schedule")).to_be_visible()
    return window


VIEWS: dict[str, Callable[[Visit, Threads], Window]] = {
    "new": _new,
    "picker": _picker,
    "unable": _unable,
    "running": _running,
    "ask": _asked,
    "done": _finished,
    "begin": _beginning,
    "mixed": _mixed,
    "changes": _changes,
    "side-by-side": _side_by_side,
    "files": _files,
    "file": _file,
    "failure": _failure,
    "away": _away,
    "search": _search,
    "palette": _palette,
    "help": _help,
    "agent": _agent,
    "memory": _memory,
    "schedules": _schedules,
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_pictured_in_every_width_and_open_to_everybody(
    visit: Visiting, threads: Threads, view: str
) -> None:
    faults = []
    for width, size in SIZES.items():
        for scheme in SCHEMES:
            person = visit(size=size, scheme=scheme, forgiven=("ERR_FAILED",))
            window = VIEWS[view](person, threads)
            window.picture(f"{width}-{scheme}-{view}")
            found = [*window.findings(), *window.evaluate(f"({_CUT_OFF})()"), *_too_wide(window)]
            faults += [f"{width} {scheme}: {each}" for each in found]
            person.context.close()
    for zoom, size in ZOOMS.items():
        person = visit(size=size, forgiven=("ERR_FAILED",))
        window = VIEWS[view](person, threads)
        window.picture(f"zoom-{zoom}-{view}")
        faults += [f"zoom {zoom}: {each}" for each in _too_wide(window)]
        person.context.close()

    assert faults == []


def _too_wide(window: Window) -> list[str]:
    wide, shown = window.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    return [f"{wide} pixels in {shown}"] if wide > shown else []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_log_in_is_pictured_and_open_to_everybody(
    browser: Browser, bridge: Forked, scheme: Scheme
) -> None:
    for width, size in SIZES.items():
        with closing(Visit(browser, bridge.url, size, scheme, forgiven=("401",))) as stranger:
            window = stranger.open()
            window.picture(f"{width}-{scheme}-log-in")
            assert window.findings() == []


def test_the_drawers_of_a_phone_open_and_close(visit: Visiting, threads: Threads) -> None:
    window = visit(size=PHONE).open(threads.done)

    for button, drawer in (("Threads", "#left"), ("Details", "#right")):
        expect(window.page.locator(drawer)).to_be_hidden()
        window.button(button).click()
        expect(window.page.locator(drawer)).to_be_in_viewport(ratio=1)
        window.picture(f"390-light-{button.lower()}")
        assert window.findings() == []
        window.page.keyboard.press("Escape")
        expect(window.page.locator(drawer)).to_be_hidden()
        expect(window.button(button)).to_be_focused()


def test_a_serious_fault_would_be_found(visit: Visiting) -> None:
    window = visit().open()

    window.page.locator("#new").evaluate("element => element.style.color = '#ccc'")

    assert [each.partition(":")[0] for each in window.findings()] == ["color-contrast"]
