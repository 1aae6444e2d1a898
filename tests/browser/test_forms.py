"""Every form of every page says what it did and what is wrong, in words that people see.

Forms are found in the routes and in the pages. One that is added later is tried as it is, and with
a wrong page token, until it has a case of its own here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from string import Template

import pytest
from playwright.sync_api import Browser, expect

from sim.slack.server import SimulatedSlack
from tests.browser.conftest import Agents
from tests.support.bridge import demo
from tests.support.forms import World, actions, find_forms
from tests.support.platform import Platform
from tests.support.served import Forked
from tests.support.window import Visit, Window

REFUSED = ("400", "403", "404", "409", "410", "422")
BUTTONS = {
    "/asks/{ask}",
    "/queue/{session}/now",
    "/queue/{session}/drop",
    "/repeat/t/web/{thread}",
    "/set/{session}/mode",
    "/set/{session}/model",
    "/stop/t/{service}/{name:path}",
    "/subagents/{number}/stop",
    "/work/{session_id}/stop",
}
"""Sent by buttons and menus of a thread, which shows at once what they did."""
LOG_IN = {"/login/{token}", "/login/plain/{token}"}
"""Their pages have no page token; `test_signing_in.py` tries them."""
OWN_STORIES = {
    "/agents/{name}/acknowledge",
    "/agents/{name}/isolate",
    "/me",
    *(f"/people/{{number}}/{each}" for each in ("role", "disable", "enable", "sign-out")),
    "/take-back/t/{service}/{name:path}",
    "/tokens",
    "/tokens/{number}/revoke",
}
"""What they are about takes a story: `test_found_agents.py`, `test_grants.py` and `test_roles.py`
try them, the last one without a browser."""
WORDS = re.compile(r"\w{3,}.*\.")
_OPEN = "() => { for (const each of document.querySelectorAll('details')) each.open = true }"
# At once: a part of the page may be renewed until something is written into it.
_FILL = """([selector, values]) => {
  const form = [...document.querySelectorAll(selector)].at(-1)?.closest("form");
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements[name];
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""
SPOILT = {"csrf": "wrong"}


@dataclass(frozen=True)
class Case:
    """How one form is tried."""

    at: Callable[[World], str]
    """Makes what the form is about, and names its page."""
    good: Mapping[str, str] = field(default_factory=dict)
    bad: Mapping[str, str] = field(default_factory=dict)
    """Values by the name of their field; without any, a wrong page token is bad."""
    button: str = "button:not([type=button])"
    done: str = "#told"
    """Where success is shown."""
    words: str = ""


def on(page: str) -> Callable[[World], str]:
    return lambda _world: page


def about(page: str) -> Callable[[World], str]:
    return lambda world: f"{page}{world.thread()}"


CRON = {"expression": "0 9 * * 1-5", "words": "say good morning"}
TOKENS = {"bot_token": "$bot_token", "app_token": "$app_token"}
CASES: dict[str, Case] = {
    "/schedules": Case(
        on("/schedules"), CRON, {**CRON, "expression": "every monday"}, words="Schedule added."
    ),
    "/schedules/{number}/pause": Case(World.schedule, words="Schedule paused."),
    "/schedules/{number}/resume": Case(World.paused_schedule, words="Schedule resumed."),
    "/schedules/{number}/run": Case(World.schedule, words="The schedule runs now."),
    "/schedules/{number}/remove": Case(World.schedule, words="Schedule removed."),
    "/agents": Case(
        on("/new-agent?driver=demo"), {"name": "newcomer", "sandbox": "none"}, {"name": "No Name"}
    ),
    "/agents/{name}/set/{key}": Case(
        World.agent, {"emoji": "\N{OWL}"}, {"emoji": "no emoji"}, words="Emoji saved."
    ),
    "/agents/{name}/undo/{key}": Case(World.changed, words="Change undone."),
    "/agents/{name}/env": Case(World.agent, {"env": "KEY=value"}, {"env": " "}),
    "/agents/{name}/env replace": Case(
        World.with_key, {"value": "another"}, {"value": " "}, "button[value=replace]"
    ),
    "/agents/{name}/env remove": Case(World.with_key, button="button[value=remove]"),
    "/agents/{name}/connect/{service}": Case(
        World.agent, TOKENS, dict.fromkeys(TOKENS, "wrong"), words="Credentials saved."
    ),
    "/agents/{name}/disconnect/{service}": Case(World.connected, words="Credentials removed."),
    "/agents/{name}/rename": Case(World.agent, {"to": "renamed"}, {"to": "No Name"}),
    "/agents/{name}/remove": Case(World.agent, {"typed": "$name"}, {"typed": "another"}),
    "/agents/{name}/probe": Case(World.agent, words="Checked."),
    "/agents/{name}/default": Case(World.agent),
    "/agents/{name}/memory/{day}/{note}": Case(World.note),
    "/send": Case(on("/"), {"text": "say hello"}, {"text": " "}, done="#log", words="hello"),
    "/rename/t/{service}/{name:path}": Case(about("/manage"), {"title": "Better"}, {"title": " "}),
    "/pin/t/{service}/{name:path}": Case(about("/manage"), words="Thread pinned"),
    "/archive/t/{service}/{name:path}": Case(about("/manage"), words="Thread archived."),
    "/fork/t/{service}/{name:path}": Case(about("/fork")),
    "/clear/t/{service}/{name:path}": Case(about("/clear")),
    "/delete/t/{service}/{name:path}": Case(about("/delete")),
    "/logout": Case(on("/"), button="#sign-out", done="h1", words="You are signed out"),
    **{
        f"{path} {word}": Case(at, good, bad, f"button[value={word}]")
        for path, at in (
            ("/agents/{name}/files/{path:path}", World.file),
            ("/agent-files/{path:path}", World.shared_file),
        )
        for word, good, bad in (
            ("save", {"text": "Three."}, {"text": "x" * 40_000}),
            ("undo", {}, {}),
            ("delete", {}, {}),
            ("restore", {}, {}),
        )
    },
}
SEARCHES = {"GET /", "GET /agents/{name}/memory", "GET /outcomes", "GET /record"}
"""Their words are what was found, or that nothing was."""
ROUTES = {*actions()} - LOG_IN - BUTTONS - OWN_STORIES
FORMS = sorted(
    {*CASES, *(each for each in ROUTES if not any(c.startswith(f"{each} ") for c in CASES))}
)


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"demo": demo(display_name="Demo", default=True)}


@pytest.fixture(scope="module")
def world(
    browser: Browser, agents: Agents, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("bridge")
    with (
        SimulatedSlack() as slack,
        Platform() as platform,
        Forked(folder, platform, agents, settings={"SLACK_API_URL": slack.url}) as bridge,
        closing(Visit(browser, bridge.url)) as visit,
    ):
        visit.sign_in(bridge.new_link())
        yield World(bridge, visit, slack)


@pytest.fixture(scope="module")
def found(world: World) -> dict[str, str]:
    """Look for forms on all pages; each with one of its pages."""
    return find_forms(world.bridge, *world.everything())


@pytest.mark.long
def test_every_form_of_every_page_is_tried(found: dict[str, str]) -> None:
    assert set(found) - OWN_STORIES == ROUTES | SEARCHES


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_a_form_says_what_it_did_and_what_is_wrong(
    browser: Browser, world: World, found: dict[str, str], form: str
) -> None:
    case = CASES.get(form) or Case(on(found[form]))
    with closing(Visit(browser, world.bridge.url, forgiven=REFUSED)) as person:
        window = person.sign_in(world.bridge.new_link())
        path = case.at(world)
        told = window.page.locator(case.done).filter(visible=True).first
        wrong = window.page.locator("[role=alert]").filter(has_text=WORDS, visible=True).first

        send(window, form, case, path, case.bad or SPOILT)
        expect(wrong).to_be_visible()
        expect(window.page.locator("#told").filter(has_text=WORDS)).to_have_count(0)

        known = {**world.tokens(), "name": world.name}
        good = {name: Template(value).substitute(known) for name, value in case.good.items()}
        send(window, form, case, path, good)
        expect(told).to_contain_text(case.words or WORDS)
        expect(wrong).to_have_count(0)


def send(window: Window, form: str, case: Case, path: str, values: Mapping[str, str]) -> None:
    """Open a page, fill in a form and press its button."""
    window.page.goto(path)
    window.page.evaluate(_OPEN)
    having = "".join(f":has([name={name}])" for name in values)
    action, own = match(form, "action"), match(form, "formaction")
    button = f"form{action}{having} {case.button}:not([formaction]), {case.button}{own}"
    window.page.evaluate(_FILL, [button, dict(values)])
    window.page.locator(button).last.click()


def match(form: str, attribute: str) -> str:
    """Write the selector of elements that are sent to a route."""
    first, *middle = re.split(r"\{[^}]*\}", form.partition(" ")[0])
    *others, last = middle or [""]
    ways = [("^" if middle else "", first), *(("*", each) for each in others), ("$", last)]
    return "".join(f"[{attribute}{way}='{words}']" for way, words in ways if words)


def test_a_schedule_is_made_paused_resumed_run_and_removed_without_a_reload(
    browser: Browser, world: World
) -> None:
    with closing(Visit(browser, world.bridge.url, forgiven=REFUSED)) as person:
        window = person.sign_in(world.bridge.new_link())
        page = window.page
        page.goto("/schedules")
        told, when = page.locator("#told"), page.get_by_label("When")
        what = page.get_by_label("What to do")

        when.fill("every monday")
        what.fill("say the mascot is a heron")
        window.button("Add schedule").click()
        expect(page.get_by_role("alert").filter(has_text="not a cron expression")).to_be_visible()
        expect(when).to_be_focused()
        expect(what).to_have_value("say the mascot is a heron")

        when.fill("0 9 * * 1-5")
        window.button("Add schedule").click()
        expect(told).to_have_text("Schedule added.")
        expect(when).to_have_value("")
        line = page.locator(".schedules > li").filter(has_text="the mascot is a heron")
        line.get_by_role("button", name="Pause").click()
        expect(told).to_have_text("Schedule paused.")
        line.get_by_role("button", name="Resume").click()
        expect(told).to_have_text("Schedule resumed.")
        line.get_by_role("button", name="Run now").click()
        expect(told).to_contain_text("runs now")
        expect(line.get_by_role("button", name="Remove it")).to_be_hidden()
        line.get_by_text("Remove", exact=False).first.click()
        window.picture("schedule-remove")
        line.get_by_role("button", name="Remove it").click()
        expect(told).to_have_text("Schedule removed.")
        expect(line).to_have_count(0)
