"""The simulated Slack sends again what nobody acknowledged, but never a click."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from sim.slack.model import App
from sim.slack.server import SimulatedSlack

pytestmark = pytest.mark.anyio


@pytest.fixture
async def slack() -> AsyncIterator[SimulatedSlack]:
    with SimulatedSlack(resend_seconds=0.05) as made:
        yield made


@pytest.fixture
async def app(slack: SimulatedSlack) -> App:
    return slack.app("claude")


@pytest.fixture
async def line(slack: SimulatedSlack, app: App) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    headers = {"Authorization": f"Bearer {app.app_token}"}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{slack.url}apps.connections.open", headers=headers) as answer:
            url = (await answer.json())["url"]
        async with session.ws_connect(url) as socket:
            assert (await frame(socket))["type"] == "hello"
            yield socket


async def frame(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    found: dict[str, Any] = await socket.receive_json(timeout=20)
    return found


async def test_an_event_that_is_not_acknowledged_comes_again_under_the_same_id(
    slack: SimulatedSlack, app: App, line: aiohttp.ClientWebSocketResponse
) -> None:
    ann = slack.person("Ann")
    slack.say(ann, slack.channel("general", [ann, app]), "hello")

    frames = [await frame(line) for _ in range(4)]

    assert [each["retry_attempt"] for each in frames] == [0, 1, 2, 3]
    assert len({each["payload"]["event_id"] for each in frames}) == 1
    assert len({each["envelope_id"] for each in frames}) == 4


async def test_a_click_comes_once_and_is_lost_if_nobody_takes_it(
    slack: SimulatedSlack, app: App, line: aiohttp.ClientWebSocketResponse
) -> None:
    ann = slack.person("Ann")
    channel = slack.channel("general", [ann, app])
    app.events = frozenset()
    button = {"type": "button", "action_id": "a", "value": "v", "text": {"text": "Yes"}}
    headers = {"Authorization": f"Bearer {app.token}"}
    message = {"channel": channel, "blocks": [{"type": "actions", "elements": [button]}]}
    address = f"{slack.url}chat.postMessage"
    async with (
        aiohttp.ClientSession() as session,
        session.post(address, json=message, headers=headers) as answer,
    ):
        ts = (await answer.json())["ts"]
    slack.click(ann, ts, "Yes")

    clicked = await frame(line)
    slack.wait(lambda: slack.lost)

    assert (clicked["type"], clicked["payload"]["actions"][0]["value"]) == ("interactive", "v")
    assert [envelope.kind for envelope in slack.lost] == ["interactive"]
