"""The page for agents: people add, change, rename and remove them, and the bridge goes on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.bridge import DEMO, demo
from tests.support.served import Forked, Site
from tests.support.window import PHONE, Scheme, Window

KEYS = {"ada": "sk-of-ada-0123456789abcdef", "bob": "sk-of-bob-fedcba9876543210"}
REFUSED = ("422",)


@pytest.fixture(scope="module")
def agents() -> Agents:
    return {"demo": demo(display_name="Demo", default=True)}


def field(window: Window, key: str) -> Locator:
    return window.page.locator(f"#f-{key}")


def add(window: Window, name: str, key: str) -> None:
    window.page.goto("/new-agent?driver=demo")
    window.page.get_by_label("Name", exact=True).fill(name)
    window.page.get_by_label("Display name").fill(name.capitalize())
    window.page.get_by_label("Environment").fill(f"DEMO_KEY={key}\n")
    window.page.get_by_text("More", exact=True).click()
    window.page.get_by_label("Sandbox").select_option("none")
    window.button("Add agent").click()
    window.page.wait_for_url(f"**/agents/{name}")


@pytest.mark.slow
def test_two_agents_with_one_driver_and_two_keys_are_added_and_talk_in_one_thread(
    bridge: Site, visit: Visiting
) -> None:
    window = visit(forgiven=REFUSED).open("/")
    page = window.page
    page.get_by_role("link", name="Add or change agents").click()
    expect(page.get_by_role("article", name="Demo")).to_contain_text("from the settings")

    # A wrong entry: one message at its field, what was written stays, nothing is added.
    page.get_by_role("link", name="Add an agent").first.click()
    page.get_by_role("link", name="Demo agent").click()
    page.get_by_label("Name", exact=True).fill("ada")
    page.get_by_label("Emoji").fill("no emoji")
    window.button("Add agent").click()
    expect(page.locator("#p-emoji")).to_contain_text("Emoji is not one emoji.")
    expect(page.get_by_label("Emoji")).to_be_focused()
    expect(page.get_by_label("Name", exact=True)).to_have_value("ada")

    for name, key in KEYS.items():
        add(window, name, key)
    expect(page.locator("#f-env")).to_contain_text("DEMO_KEY")
    assert not any(key in page.content() for key in KEYS.values())

    page.goto("/")
    window.say("@ada say I am Ada")
    expect(window.turns.last).to_contain_text("I am Ada")
    window.say("@bob say I am Bob")
    expect(window.turns.last).to_contain_text("I am Bob")
    thread = window.path
    page.goto("/")
    window.say("@bob say alone")
    expect(window.turns.last).to_contain_text("alone")
    alone = window.path

    # A field is saved by itself, and its last change can be undone.
    page.goto("/agents/bob")
    page.get_by_label("Display name").fill("Robert")
    page.get_by_label("Display name").press("Enter")
    expect(field(window, "display_name")).to_contain_text("Was Bob. Undo")
    expect(page.get_by_role("heading", level=1)).to_have_text("Robert")
    page.get_by_label("Permissions").select_option("trusted")
    expect(field(window, "permissions")).to_contain_text("Was Careful, as usual. Undo")
    page.get_by_label("Emoji").fill("no emoji")
    window.button("Save Emoji").click()
    expect(page.locator("#p-emoji")).to_contain_text("Write one, such as")
    window.button("Undo Display name").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bob")
    expect(page.get_by_label("Emoji")).to_have_value("no emoji")

    # What it offers is known once it was tried.
    window.button("Check now").click()
    expect(page.locator("#status")).to_contain_text("answers as")
    expect(page.locator("#v-mode option")).not_to_have_count(0)

    window.button("Replace DEMO_KEY").click()
    expect(page.locator("#p-env")).to_contain_text("Env value is empty.")
    page.get_by_label("New value of DEMO_KEY").fill("another")
    window.button("Replace DEMO_KEY").click()
    expect(page.get_by_label("New value of DEMO_KEY")).to_have_value("")
    window.button("Remove DEMO_KEY").click()
    expect(page.locator("#f-env")).not_to_contain_text("kept")

    page.get_by_label("New name").fill("robert")
    window.button("Rename").click()
    page.wait_for_url("**/agents/robert")

    # Removal names what ends, and asks for the name.
    expect(page.locator("#danger")).to_contain_text("2 sessions end and stay readable")
    window.button("Remove robert").click()
    expect(page.locator("#p-remove")).to_contain_text("Type robert to remove it.")
    page.get_by_label("Type robert to remove it").fill("robert")
    window.button("Remove robert").click()
    page.wait_for_url("**/agents")
    page.get_by_text("Removed: 1").click()
    expect(page.locator(".gone")).to_contain_text("robert")

    page.goto(thread)
    expect(window.log).to_contain_text("Bob (removed)")
    expect(page.locator("#side")).not_to_contain_text("robert")
    expect(page.locator("#to")).to_contain_text("Ada")
    window.say("say still here")
    expect(window.turns.last).to_contain_text("still here")
    page.goto(alone)
    expect(window.log).to_contain_text("Bob (removed)")
    expect(page.locator("#to")).to_contain_text("Choose an agent")
    window.page.locator("#to").select_option("ada")
    window.say("say taken over")
    expect(window.turns.last).to_contain_text("taken over")
    stored = (bridge.data_dir / "bridge.db").read_bytes()
    assert not any(key.encode() in stored for key in KEYS.values())


@pytest.mark.slow
def test_the_forms_work_without_a_script(visit: Visiting) -> None:
    window = visit(scripts=False, forgiven=REFUSED).open("/new-agent")
    page = window.page
    page.get_by_label("Name", exact=True).fill("plain")
    page.get_by_label("Command").fill(shlex.join(DEMO))
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Sandbox").select_option("none")
    window.button("Add agent").click()
    page.wait_for_url("**/agents/plain*")

    page.get_by_label("Description").fill("Plain words")
    window.button("Save Description").click()
    expect(field(window, "description")).to_contain_text("Was empty. Undo")
    page.get_by_label("Hosts").fill("https://example.com")
    window.button("Save Hosts").click()
    expect(page.locator("#p-network_hosts")).to_contain_text("is not a host")
    window.button("Undo Description").click()
    expect(page.get_by_label("Description")).to_have_value("")
    page.get_by_text("Connect Slack").click()
    page.get_by_label("Bot token").fill("wrong")
    page.get_by_label("App token").fill("wrong")
    page.locator("#s-slack").get_by_role("button", name="Test and save").click()
    expect(page.locator("#s-slack")).to_contain_text("is not a bot token")


@pytest.mark.long
def test_what_changes_elsewhere_is_seen_and_what_is_being_written_stays(
    bridge: Forked, visit: Visiting
) -> None:
    bridge.http.post("/api/v1/agents", json={"name": "moving", **demo()})
    window = visit().open("/agents/moving")
    window.page.get_by_label("Description").fill("half a sent")

    bridge.http.patch("/api/v1/agents/moving", json={"display_name": "Elsewhere", "model": "m"})

    expect(window.page.get_by_role("heading", level=1)).to_have_text("Elsewhere")
    expect(window.page.get_by_label("Model")).to_have_value("m")
    expect(window.page.get_by_label("Description")).to_have_value("half a sent")


@pytest.mark.long
def test_an_agent_of_the_settings_is_shown_and_not_changed(visit: Visiting) -> None:
    window = visit().open("/agents/demo")

    expect(window.page.locator("main")).to_contain_text("Change it in AGENTS_JSON.")
    expect(window.page.locator("main")).to_contain_text("AGENT_BRIDGE_DEMO_FAULTS")
    expect(window.button("Save")).to_have_count(0)


# On a small screen the whole page scrolls, else only its middle does.
_SCROLLED = "() => innerWidth > 760 ? scrollY : null"
SIZES = {
    "wide": (1440, 900),
    "tablet": (768, 1024),
    "phone": PHONE,
    "zoom-200": (640, 400),
    "zoom-400": (320, 256),
}
"""A page that is zoomed has so much less room."""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_page_of_agents_is_pictured_and_open_to_everybody(
    crew: None, visit: Visiting, size: str, scheme: Scheme
) -> None:
    person = visit(size=SIZES[size], scheme=scheme)
    for name, path in {
        "list": "/agents",
        "one": "/agents/pictured",
        "given": "/agents/demo",
        "new": "/new-agent?driver=claude",
    }.items():
        window = person.open(path)
        for summary in window.page.locator("summary").all():
            summary.click()
        assert window.findings() == []
        assert window.page.evaluate("document.documentElement.scrollWidth") == SIZES[size][0]
        for number, place in enumerate(("start", "end")):
            last = window.page.locator(".sheet > *:visible").nth(-number)
            last.evaluate(f"element => element.scrollIntoView({{ block: '{place}' }})")
            assert window.page.evaluate(_SCROLLED) in (0, None)
            window.picture(f"agents-{size}-{scheme}-{name}-{place}")


@pytest.mark.slow
def test_an_agent_is_added_changed_and_removed_with_the_keyboard_alone(visit: Visiting) -> None:
    window = visit().open("/agents")
    page = window.page

    def go(target: Locator) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            if target.evaluate("element => element === document.activeElement"):
                return
        raise AssertionError(f"no way to {target} with Tab")

    go(page.get_by_role("link", name="Add an agent").first)
    page.keyboard.press("Enter")
    page.wait_for_url("**/new-agent")
    go(page.get_by_role("link", name="Demo agent"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/new-agent?driver=demo")
    go(page.get_by_label("Name", exact=True))
    page.keyboard.type("typist")
    go(page.get_by_text("More", exact=True))
    page.keyboard.press("Enter")
    go(page.get_by_label("Sandbox"))
    page.keyboard.type("Not")
    go(window.button("Add agent"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/typist")

    go(page.get_by_label("Display name"))
    page.keyboard.type("The Typist")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("The Typist")
    expect(page.get_by_label("Display name")).to_be_focused()
    go(window.button("Undo Display name"))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Display name")).to_have_value("")
    expect(field(window, "display_name").locator(":focus")).to_have_count(1)
    go(page.get_by_label("Type typist to remove it"))
    page.keyboard.type("typist")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents")
    expect(page.locator(".agent-cards")).not_to_contain_text("@typist")


@pytest.fixture
def crew(bridge: Forked) -> Iterator[None]:
    """Add an agent with much to show."""
    entry = {
        **demo(),
        "display_name": "Pictured",
        "description": "Has a value in many fields.",
        "permissions": [{"allow": "read"}, {"ask": "execute"}],
        "env": {"PICTURED_KEY": "sk-0123456789-pictured"},
    }
    for name in ("pictured", "hidden-one", "gone"):
        more = {"name": name, **entry, "visible": name != "hidden-one"}
        assert bridge.http.post("/api/v1/agents", json=more).status_code == 201
    bridge.http.delete("/api/v1/agents/gone")
    bridge.http.post("/api/v1/agents/pictured/probe")
    yield
    for name in ("pictured", "hidden-one"):
        bridge.http.delete(f"/api/v1/agents/{name}")


@pytest.mark.long
def test_a_persona_is_written_refused_undone_and_seen_in_the_prompt(visit: Visiting) -> None:
    window = visit(forgiven=REFUSED).open("/agents/demo")
    page, text = window.page, "Text of IDENTITY.md"
    page.locator("#persona").get_by_role("link", name="IDENTITY.md").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("IDENTITY.md")

    page.get_by_label(text).fill("---\nnmae: Ada\n---\nYou count.")
    window.button("Save").click()
    expect(page.locator("#p-file")).to_contain_text("Line 2: this is none of the keys.")
    expect(page.get_by_label(text)).to_have_value("---\nnmae: Ada\n---\nYou count.")
    page.get_by_label(text).fill("---\nname: Ada\n---\nYou count.")
    window.button("Save").click()
    expect(page.locator("#head")).not_to_contain_text("not written yet")
    expect(page.locator("#versions li")).to_have_count(1)
    page.get_by_label(text).fill("You write.")
    window.button("Save").click()
    expect(page.locator("#versions li")).to_have_count(2)
    window.button("Undo the last change").click()
    expect(page.get_by_label(text)).to_have_value("---\nname: Ada\n---\nYou count.")
    assert window.findings() == []
    window.picture("persona-editor")

    page.goto("/")
    window.say("@demo say hello")
    expect(window.turns.last).to_contain_text("hello")
    window.settled()
    window.turns.last.get_by_role("link", name="prompt").click()
    expect(page.get_by_label("Prompt", exact=True)).to_contain_text("You count.")
    assert window.findings() == []
    window.picture("prompt")

    plain = visit(scripts=False, size=PHONE, scheme="dark").open("/agents")
    plain.page.get_by_role("link", name="USER.md").click()
    plain.page.get_by_label("Text of USER.md").fill("The team.")
    plain.button("Save").click()
    expect(plain.page.get_by_label("Text of USER.md")).to_have_value("The team.")
    plain.button("Delete").click()
    expect(plain.page.get_by_text("not written yet")).to_be_visible()
    plain.button("Restore version 2").click()
    expect(plain.page.get_by_label("Text of USER.md")).to_have_value("The team.")
    plain.picture("persona-phone")
