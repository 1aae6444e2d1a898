"""The simulated Slack refuses what Slack refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from sim.slack import model as slack
from sim.slack.server import SimulatedSlack
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

    def stream_chunks(self, ts: str, *chunks: dict[str, Any]) -> dict[str, Any]:
        return self.call("chat.appendStream", channel=self.channel, ts=ts, chunks=chunks)

    def append(self, ts: str, text: str) -> dict[str, Any]:
        return self.call("chat.appendStream", channel=self.channel, ts=ts, markdown_text=text)


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def task(name: str, status: str, **more: str) -> dict[str, Any]:
    return {"type": "task_update", "id": name, "title": name, "status": status, **more}


@pytest.fixture
def scene() -> Iterator[Scene]:
    times = [START]
    with SimulatedSlack(lambda: times[0]) as world:
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
        ({"blocks": [section("x" * 3001)]}, "invalid_blocks"),
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


def test_a_stream_takes_nothing_after_its_end(scene: Scene) -> None:
    ts = scene.stream()["ts"]
    scene.call("chat.stopStream", channel=scene.channel, ts=ts)

    assert scene.append(ts, "more")["error"] == "message_not_in_streaming_state"


def test_a_stream_ends_five_minutes_after_it_began_and_what_runs_in_it_turns_red(
    scene: Scene,
) -> None:
    ts = scene.stream(chunks=[task("a", "in_progress"), task("b", "pending")])["ts"]
    for _ in range(4):
        scene.time += 70
        assert scene.stream_chunks(ts, {"type": "markdown_text", "text": "more "})["ok"]
    scene.time += 21

    refused = scene.append(ts, "more")

    message = scene.world.message(ts)
    assert refused["error"] == "message_not_in_streaming_state"
    assert message.stream is not None
    assert [card["status"] for card in message.stream.tasks.values()] == ["error", "pending"]
    assert scene.world.reds == [ts]
    assert scene.world.status(scene.app, scene.channel, scene.thread) == "active"
    [told] = scene.world.notified(scene.ann)
    assert told.at == START + slack.STREAM_SECONDS
    scene.call("chat.update", channel=scene.channel, ts=ts, text="x")
    assert not message.red


def test_people_are_notified_of_posts_and_of_ended_streams_but_never_of_edits(
    scene: Scene,
) -> None:
    bob = scene.world.person("Bob")
    scene.world.channels[scene.channel].members.add(bob)
    place = {"channel": scene.channel}
    ts = scene.stream(markdown_text="one")["ts"]
    begun = list(scene.world.notifications)
    scene.call("chat.stopStream", ts=ts, **place)
    scene.call("chat.update", ts=ts, text="two", **place)
    scene.call("chat.postMessage", text="three", thread_ts=scene.thread, **place)

    assert begun == []
    assert [each.words for each in scene.world.notified(scene.ann)] == ["one", "three"]
    assert scene.world.notified(bob) == []


def test_cards_are_appended_to_and_have_little_room(scene: Scene) -> None:
    ts = scene.stream(chunks=[task("a", "in_progress", details="Let me ", output="x")])["ts"]
    scene.stream_chunks(ts, task("a", "complete", details="look"))

    stream = scene.world.message(ts).stream
    assert stream is not None
    assert stream.tasks["a"]["details"] == "Let me look"
    assert stream.tasks["a"]["status"] == "complete"
    long = task("a", "complete", output="x" * 257)
    assert scene.stream_chunks(ts, long)["error"] == "invalid_chunks"


def test_cards_count_in_what_a_stream_may_hold(scene: Scene) -> None:
    ts = scene.stream(
        task_display_mode="plan",
        chunks=[task(str(number), "complete", details="x" * 250) for number in range(40)],
    )["ts"]

    refused = scene.stream_chunks(ts, {"type": "markdown_text", "text": "x" * 2_000})

    assert refused["error"] == "msg_blocks_too_long"


def test_a_stream_has_a_total_cap_and_cannot_be_edited(scene: Scene) -> None:
    ts = scene.stream(markdown_text="x" * 11_000)["ts"]

    edited = scene.call("chat.update", channel=scene.channel, ts=ts, text="hi")

    assert scene.append(ts, "x" * 2_000)["error"] == "msg_too_long"
    assert edited["error"] == "streaming_state_conflict"


def test_a_stream_in_a_channel_needs_somebody_whom_it_is_for(scene: Scene) -> None:
    refused = scene.call("chat.startStream", channel=scene.channel, thread_ts=scene.thread)

    assert refused["error"] == "missing_recipient_team_id"


def test_a_session_that_works_is_active_again_after_an_hour(scene: Scene) -> None:
    place = {"channel_id": scene.channel, "thread_ts": scene.thread}
    scene.call("agents.sessions.setStatus", status="processing", **place)
    scene.time += slack.SESSION_SECONDS - 1
    during = scene.world.status(scene.app, scene.channel, scene.thread)
    scene.time += 2

    assert during == "processing"
    assert scene.world.status(scene.app, scene.channel, scene.thread) == "active"
    with pytest.raises(LookupError):
        scene.world.press_stop(scene.ann, scene.app, scene.channel, scene.thread)


def test_the_status_of_a_thread_without_a_session_disappears(scene: Scene) -> None:
    place = {"channel_id": scene.channel, "thread_ts": scene.thread}
    scene.call("assistant.threads.setStatus", status="is thinking", **place)
    during = scene.world.status(scene.app, scene.channel, scene.thread)
    scene.time += slack.STATUS_SECONDS + 1

    assert (during, scene.world.status(scene.app, scene.channel, scene.thread)) == ("thinking", "")


@pytest.mark.parametrize("ended", [None, "processing", "suspended"])
def test_a_stream_works_in_a_session_and_ends_in_the_state_it_is_given(
    scene: Scene, ended: str | None
) -> None:
    ts = scene.stream()["ts"]
    during = scene.world.status(scene.app, scene.channel, scene.thread)
    more = {} if ended is None else {"session_status": ended}
    scene.call("chat.stopStream", channel=scene.channel, ts=ts, **more)

    after = scene.world.status(scene.app, scene.channel, scene.thread)
    assert (during, after) == ("processing", ended or "active")


def test_sessions_are_refused_where_there_are_none(scene: Scene) -> None:
    def refusal(**more: Any) -> str:
        given = {"channel_id": scene.channel, "thread_ts": scene.thread, "status": "active"}
        return str(scene.call("agents.sessions.setStatus", **{**given, **more})["error"])

    assert refusal(initiator_user_id="U9") == "user_not_found"
    assert refusal(thread_ts=None) == "thread_ts_required"
    scene.world.channels[scene.channel].sessions = False
    assert refusal() == "method_not_supported_for_channel_type"
    scene.world.channels[scene.channel].members.remove(scene.app.user)
    assert refusal() == "not_authorized"
    scene.app.no_sessions = "not_an_agent"
    assert refusal() == "not_an_agent"


def test_markdown_becomes_more_blocks_than_one(scene: Scene) -> None:
    text = "# Head\nwords\n\nmore words\n" * 26
    block = {"type": "markdown", "text": text}

    refused = scene.call("chat.postMessage", channel=scene.channel, blocks=[block])

    assert refused["error"] == "invalid_blocks"


def test_the_text_of_all_blocks_counts_together_and_escaped(scene: Scene) -> None:
    context = {"type": "context", "elements": [{"type": "plain_text", "text": "x" * 2_500}]}
    many = [{"type": "markdown", "text": "x" * 9_800}, context]
    code = [{"type": "markdown", "text": "<" * 3_500}]

    for blocks in (many, code):
        refused = scene.call("chat.postMessage", channel=scene.channel, blocks=blocks)
        assert refused["error"] == "msg_blocks_too_long"


def test_an_empty_file_cannot_be_uploaded(scene: Scene) -> None:
    headers = {"Authorization": f"Bearer {scene.app.token}"}
    method = "files.getUploadURLExternal"

    empty = scene.http.post(method, data={"filename": "a.txt", "length": 0}, headers=headers)
    read = scene.http.get(method, params={"filename": "a.txt", "length": 1}, headers=headers)

    assert empty.json()["error"] == "missing_argument"
    assert read.json()["error"] == "invalid_arguments"


def test_too_many_calls_in_a_minute_are_limited_by_tier(scene: Scene) -> None:
    answers = [scene.stream() for _ in range(21)]
    scene.time += 61

    assert [each["ok"] for each in answers] == [True] * 20 + [False]
    assert (answers[-1]["status"], answers[-1]["headers"]["retry-after"]) == (429, "61")
    assert scene.stream()["ok"]


def test_nobody_changes_the_message_of_another(scene: Scene) -> None:
    refused = scene.call("chat.update", channel=scene.channel, ts=scene.thread, text="mine")

    assert refused["error"] == "cant_update_message"
