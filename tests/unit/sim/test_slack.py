"""The simulated Slack refuses what Slack refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from app.sim import slack
from app.sim.slack_server import SimulatedSlack
from tests.support.clock import START


@dataclass
class Scene:
    """A workspace, an app in it, and a hand to call with."""

    world: SimulatedSlack
    app: slack.App
    ann: str
    channel: str
    thread: str
    http: httpx.Client
    time: float = START

    def now(self) -> float:
        return self.time

    def call(self, method: str, token: str | None = None, **arguments: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token or self.app.token}"}
        answer = self.http.post(method, json=arguments, headers=headers)
        return {**answer.json(), "status": answer.status_code, "headers": answer.headers}

    def stream(self, **more: Any) -> dict[str, Any]:
        return self.call(
            "chat.startStream",
            channel=self.channel,
            thread_ts=self.thread,
            recipient_user_id=self.ann,
            recipient_team_id=slack.TEAM,
            **more,
        )

    def append(self, ts: str, text: str) -> dict[str, Any]:
        return self.call("chat.appendStream", channel=self.channel, ts=ts, markdown_text=text)


@pytest.fixture
def scene() -> Iterator[Scene]:
    times = [START]
    with SimulatedSlack(lambda: times[0], tiers=True) as world:
        app, ann = world.app("claude"), world.person("Ann")
        channel = world.channel("general", [ann, app])
        thread = world.say(ann, channel, "hi")
        with httpx.Client(base_url=world.url, trust_env=False, verify=False) as http:
            made = Scene(world, app, ann, channel, thread, http)
            world.now = made.now
            yield made


def test_a_call_needs_a_token_of_its_kind(scene: Scene) -> None:
    assert scene.call("auth.test", token="xoxb-no")["error"] == "invalid_auth"
    assert scene.call("auth.test", token=scene.app.app_token)["error"] == "not_allowed_token_type"
    assert scene.call("apps.connections.open")["error"] == "not_allowed_token_type"
    scene.app.revoked = True
    assert scene.call("auth.test")["error"] == "token_revoked"


def test_a_method_needs_its_scope(scene: Scene) -> None:
    scene.app.scopes = frozenset()

    refused = scene.call("chat.postMessage", channel=scene.channel, text="hi")

    assert (refused["error"], refused["needed"]) == ("missing_scope", "chat:write")


def test_reading_methods_take_no_json(scene: Scene) -> None:
    assert scene.call("users.info", user=scene.ann)["error"] == "invalid_arguments"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({}, "no_text"),
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"blocks": [{"type": "markdown", "text": "x" * 7000}] * 2}, "msg_blocks_too_long"),
        ({"blocks": [{"type": "section", "text": {"text": "x" * 3001}}]}, "invalid_blocks"),
        ({"text": "x", "thread_ts": "1.0"}, "thread_not_found"),
        ({"text": "x", "channel": "C9"}, "channel_not_found"),
    ],
)
def test_a_message_has_its_limits(scene: Scene, content: dict[str, Any], error: str) -> None:
    refused = scene.call("chat.postMessage", **{"channel": scene.channel, **content})

    assert refused["error"] == error


def test_an_app_that_was_removed_cannot_post(scene: Scene) -> None:
    scene.world.channels[scene.channel].members.remove(scene.app.user)

    refused = scene.call("chat.postMessage", channel=scene.channel, text="hi")

    assert refused["error"] == "not_in_channel"


def test_a_stream_takes_nothing_after_its_end_or_five_silent_minutes(scene: Scene) -> None:
    first, second = scene.stream()["ts"], scene.stream()["ts"]
    scene.call("chat.stopStream", channel=scene.channel, ts=first)

    stopped = scene.append(first, "more")
    scene.time += slack.STREAM_IDLE_SECONDS + 1
    idle = scene.append(second, "more")

    assert stopped["error"] == idle["error"] == "message_not_in_streaming_state"


def test_a_stream_has_a_total_cap_and_cannot_be_edited(scene: Scene) -> None:
    ts = scene.stream(markdown_text="x" * 11_000)["ts"]

    edited = scene.call("chat.update", channel=scene.channel, ts=ts, text="hi")

    assert scene.append(ts, "x" * 2_000)["error"] == "msg_too_long"
    assert edited["error"] == "streaming_state_conflict"


def test_a_stream_in_a_channel_needs_somebody_whom_it_is_for(scene: Scene) -> None:
    refused = scene.call("chat.startStream", channel=scene.channel, thread_ts=scene.thread)

    assert refused["error"] == "missing_recipient_team_id"


def test_a_status_disappears(scene: Scene) -> None:
    place = {"channel_id": scene.channel, "thread_ts": scene.thread}
    scene.call("agents.sessions.setStatus", status="processing", **place)
    shown = scene.world.status(scene.app, scene.channel, scene.thread)
    scene.time += slack.STATUS_SECONDS + 1

    assert shown == "processing"
    assert scene.world.status(scene.app, scene.channel, scene.thread) == ""
    with pytest.raises(LookupError):
        scene.world.press_stop(scene.ann, scene.app, scene.channel, scene.thread)


def test_too_many_calls_in_a_minute_are_limited_by_tier(scene: Scene) -> None:
    answers = [scene.stream() for _ in range(21)]
    scene.time += 61

    assert [each["ok"] for each in answers] == [True] * 20 + [False]
    assert (answers[-1]["status"], answers[-1]["headers"]["retry-after"]) == (429, "61")
    assert scene.stream()["ok"]


def test_nobody_changes_the_message_of_another(scene: Scene) -> None:
    refused = scene.call("chat.update", channel=scene.channel, ts=scene.thread, text="mine")

    assert refused["error"] == "cant_update_message"
