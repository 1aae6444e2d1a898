"""An agent is connected to a service from its page, while the bridge runs."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from app.sim.slack_model import App
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

    assert (stored.status_code, stored.headers["location"]) == (303, "/agents/later#s-slack")
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
