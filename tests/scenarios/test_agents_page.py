"""The forms of the page for agents, sent to a running bridge: connections, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from sim.slack.model import App
from tests.support.bridge import DEMO
from tests.support.slack import SlackWorld

ENTRY = {"name": "later", "command": DEMO, "sandbox": "none", "description": "Comes later"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlackWorld]:
    with SlackWorld(tmp_path_factory.mktemp("connecting")) as world:
        yield world


def send(world: SlackWorld, path: str, **form: str) -> httpx.Response:
    return world.bridge.http.post(f"/agents/later/{path}", data=form)


def page(world: SlackWorld) -> str:
    answer = world.bridge.http.get("/agents/later")
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def tokens(app: App) -> dict[str, str]:
    return {"bot_token": app.token, "app_token": app.app_token}


def test_credentials_are_tried_before_they_are_stored_and_work_at_once(world: SlackWorld) -> None:
    app = world.slack.app("later")
    assert world.bridge.http.post("/api/v1/agents", json=ENTRY).status_code == 201
    assert "https://api.slack.com/apps?new_app=1&manifest_json=" in page(world)
    wrong = {**tokens(app), "bot_token": "xoxb-not-one-of-theirs"}

    refused = send(world, "connect/slack", **wrong)

    assert refused.status_code == 422
    assert "Slack refuses: " in unescape(refused.text)
    assert "xoxb-not-one-of-theirs" not in refused.text
    shown = world.bridge.http.get("/api/v1/agents/later").json()
    assert shown["credentials"] == {}

    stored = send(world, "connect/slack", **tokens(app))

    assert (stored.status_code, stored.headers["location"]) == (
        303,
        "/agents/later?done=connected#s-slack",
    )
    world.wait(lambda: world.slack.connected(app))
    assert "connected" in page(world)
    assert not any(token in page(world) for token in tokens(app).values())
    world.apps["later"] = app
    world.channel = world.slack.channel("later", [world.ann, app])
    thread = world.say(f"{world.at('later')} say I am here")
    world.wait_answer(thread, "I am here", "later")

    gone = send(world, "disconnect/slack")

    assert gone.status_code == 303
    world.wait(lambda: not world.slack.connected(app))
    assert world.bridge.http.get("/api/v1/agents/later").json()["credentials"] == {}


def test_a_service_that_cannot_reach_the_bridge_says_what_to_set(world: SlackWorld) -> None:
    added = world.bridge.http.post("/api/v1/agents", json={**ENTRY, "name": "local"})
    assert added.status_code == 201

    shown = unescape(world.bridge.http.get("/agents/local").text)

    assert "BRIDGE_BASE_URL: GitHub cannot reach" in shown
    assert "BRIDGE_BASE_URL: Linear cannot reach" in shown


KEY = "sk-a-key-that-must-not-come-back-0123456789"
COMMAND = " ".join(DEMO)
WRONG = [
    ({"name": "Wrong Name", "command": COMMAND}, "The name is not valid."),
    ({"name": "claude", "command": COMMAND}, "There is an agent 'claude' already."),
    ({"name": "bad"}, "has no command. Add command, driver or url."),
    ({"name": "bad", "driver": "nothing-known"}, "Driver is not a known agent."),
    ({"name": "bad", "command": 'run "it'}, "Command has a quote that is not closed."),
    ({"name": "bad", "command": COMMAND, "emoji": "word"}, "Emoji is not one emoji."),
    ({"name": "bad", "command": COMMAND, "home": "/"}, "Home is or contains your own home."),
    ({"name": "bad", "command": COMMAND, "idle_minutes": "soon"}, "Idle minutes is not a number."),
    (
        {"name": "bad", "command": COMMAND, "permissions": "rules", "rules": "[oops"},
        "Permissions is neither a preset nor a list of rules.",
    ),
    ({"name": "bad", "command": COMMAND, "extends": "nobody"}, "Extends does not name another"),
    ({"name": "bad", "command": COMMAND, "env": KEY}, "Env line 1 is not NAME=value."),
    ({"name": "bad", "command": COMMAND, "env": f"A B={KEY}"}, "Env is not a variable name."),
]


@pytest.mark.parametrize(("form", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_wrong_entry_is_refused_with_one_message_and_changes_nothing(
    world: SlackWorld, form: dict[str, str], words: str
) -> None:
    before = world.bridge.http.get("/api/v1/agents").json()

    refused = world.bridge.http.post("/agents", data=form)

    assert refused.status_code == 422
    told = re.findall(r'data-problem role="alert">([^<]+)<', unescape(refused.text))
    assert len(told) == 1, told
    assert words in told[0]
    assert KEY not in refused.text
    assert world.bridge.http.get("/api/v1/agents").json() == before


def test_a_wrong_field_is_refused_and_what_is_given_by_the_settings_is_not_changed(
    world: SlackWorld,
) -> None:
    http = world.bridge.http
    assert http.post("/api/v1/agents", json={**ENTRY, "name": "kept"}).status_code == 201
    before = http.get("/api/v1/agents/kept").json()["entry"]

    wrong = http.post("/agents/kept/set/emoji", data={"emoji": "word"})
    given = http.post("/agents/claude/set/emoji", data={"emoji": "\N{FOX FACE}"})
    typed = http.post("/agents/kept/remove", data={"typed": "other"})

    assert "Emoji is not one emoji." in wrong.text
    assert "The settings describe claude. Change it in AGENTS_JSON." in given.text
    assert "Type kept to remove it." in typed.text
    assert [each.status_code for each in (wrong, given, typed)] == [422] * 3
    assert http.get("/api/v1/agents/kept").json()["entry"] == before
    assert http.post("/agents/kept/undo/emoji", data={}).status_code == 409
    assert http.post("/agents/kept/set/nothing", data={}).status_code == 404
    assert http.get("/agents/nobody").status_code == 404
