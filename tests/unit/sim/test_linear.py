"""The simulated Linear: it refuses what the real one refuses, and keeps time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sim.linear import App, Linear, LinearSession
from sim.linear.records import new_id
from sim.linear.rules import LinearRefusal
from tests.support.clock import START, ManualClock

THOUGHT = {"type": "thought", "body": "Hm."}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def linear(clock: ManualClock) -> Iterator[Linear]:
    with Linear(clock.now) as linear:
        yield linear


@pytest.fixture
def app(linear: Linear) -> App:
    return linear.agent("demo")


@pytest.fixture
def session(linear: Linear, app: App) -> LinearSession:
    return linear.delegate(linear.issue("Do this"), app, linear.person("Ann"))


def act(linear: Linear, app: App, session: LinearSession, **given: Any) -> None:
    linear.workspace.act(app, {"agentSessionId": session.id, "content": THOUGHT, **given})


@pytest.mark.parametrize(
    "given",
    [
        {"content": {"type": "thought"}},
        {"content": {"type": "thought", "body": " "}},
        {"content": {"type": "thought", "body": "x", "title": "y"}},
        {"content": {"type": "action", "action": "Read"}},
        {"content": {"type": "action", "action": "Read", "parameter": 7}},
        {"content": {"type": "prompt", "body": "I am a person"}},
        {"content": {"type": "note", "body": "x"}},
        {"content": "x"},
        {"content": {"type": "response", "body": "x"}, "ephemeral": True},
        {"id": "1"},
        {"id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
        {"signal": "select", "signalMetadata": {"options": [{"label": "A", "value": "a"}]}},
        {"content": {"type": "elicitation", "body": "?"}, "signal": "select"},
        {"content": {"type": "elicitation", "body": "?"}, "signal": "stop"},
    ],
)
def test_activities_of_another_shape_are_refused(
    linear: Linear, app: App, session: LinearSession, given: dict[str, Any]
) -> None:
    with pytest.raises(LinearRefusal):
        act(linear, app, session, **given)

    assert session.activities == []


def test_an_id_serves_once(linear: Linear, app: App, session: LinearSession) -> None:
    name = new_id()
    act(linear, app, session, id=name)

    with pytest.raises(LinearRefusal):
        act(linear, app, session, id=name)


def test_another_app_may_not_write(linear: Linear, session: LinearSession) -> None:
    with pytest.raises(LinearRefusal):
        act(linear, linear.agent("other"), session)


def test_an_ephemeral_activity_is_gone_when_something_follows(
    linear: Linear, app: App, session: LinearSession
) -> None:
    act(linear, app, session, ephemeral=True)
    assert len(session.visible) == 1

    act(linear, app, session)

    assert [activity.ephemeral for activity in session.visible] == [False]


@pytest.mark.anyio
async def test_deadlines_are_watched(
    linear: Linear, app: App, session: LinearSession, clock: ManualClock
) -> None:
    await clock.advance(11.0)
    assert linear.workspace.is_unresponsive(session)
    act(linear, app, session)
    await clock.advance(1801.0)

    assert linear.workspace.status(session) == "stale"


def test_whatever_follows_the_word_after_a_stop_is_a_fault(
    linear: Linear, app: App, session: LinearSession
) -> None:
    linear.stop(session, linear.person("Bob"))
    act(linear, app, session, content={"type": "response", "body": "Stopped."})
    assert linear.faults == []

    act(linear, app, session)

    assert len(linear.faults) == 1


def test_what_is_not_acknowledged_is_sent_again_after_a_minute_an_hour_and_six(
    linear: Linear, session: LinearSession
) -> None:
    (delivery,) = linear.hooks.sent
    due = []
    for _ in range(4):
        delivery.answers.append(503)
        due.append(delivery.due)

    assert due == [START + 60, START + 3660, START + 25260, None]
