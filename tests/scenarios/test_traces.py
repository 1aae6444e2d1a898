"""Traces: one per turn, with a span for every stage, over restarts too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge import BridgeProcess
from tests.support.collector import Collector, Span
from tests.support.platform import Platform

pytestmark = [
    pytest.mark.timeout(180),  # spans are sent every five seconds
    pytest.mark.one_database,
]

STAGES = {"delivery", "intake", "queue", "start", "prompt", "ask", "post", "turn"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture
def bridge(tmp_path: Path, collector: Collector) -> Iterator[BridgeProcess]:
    with (
        Platform() as platform,
        BridgeProcess(tmp_path, platform, settings=collector.settings) as running,
    ):
        yield running


def of_turn(spans: list[Span], turn: int) -> dict[str, Span]:
    """Pick the spans of a turn by stage, the last one of each."""
    return {span.name: span for span in spans if span.facts["agent_bridge.turn"] == turn}


def test_every_stage_of_a_turn_is_a_span_of_one_trace(
    bridge: BridgeProcess, collector: Collector
) -> None:
    bridge.say("t1", "ask Really? | yes | no\nsay done")
    asks: list[dict[str, Any]] = []

    def is_asked() -> bool:
        asks[:] = bridge.http.get("/api/v1/asks", params={"state": "open"}).json()["items"]
        return bool(asks)

    bridge.wait(is_asked, "no ask")
    answer = {"option": asks[0]["options"][0]["id"]}
    bridge.http.post(f"/api/v1/asks/{asks[0]['id']}/answer", json=answer).raise_for_status()

    spans = of_turn(collector.wait(lambda spans: of_turn(spans, 1).keys() >= STAGES), 1)

    root = spans.pop("turn")
    assert (root.parent, root.service) == ("", "agent-bridge")
    assert root.facts["agent_bridge.agent"] == "demo"
    assert {span.trace for span in spans.values()} == {root.trace}
    assert {span.parent for span in spans.values()} == {root.id}
    assert all(span.ended >= span.began for span in spans.values())
    assert spans["delivery"].ended == spans["intake"].began <= spans["queue"].ended
    assert spans["queue"].ended <= spans["start"].ended <= spans["ask"].began
    assert spans["prompt"].began <= spans["ask"].began < spans["ask"].ended <= root.ended
    assert not bridge.logged(collector.key)


@pytest.mark.long
def test_a_turn_that_goes_on_after_a_crash_stays_in_its_trace(
    bridge: BridgeProcess, collector: Collector
) -> None:
    bridge.say("t1", "hold gate\nsay done")
    first = of_turn(collector.wait(lambda spans: "start" in of_turn(spans, 1)), 1)
    bridge.kill()

    bridge.start()
    (bridge.workspace() / "gate").touch()

    whole = of_turn(collector.wait(lambda spans: "turn" in of_turn(spans, 1)), 1)
    assert whole["start"].began > first["start"].ended
    assert {whole[name].trace for name in ("turn", "start")} == {first["start"].trace}
    assert whole["turn"].id == first["start"].parent == whole["start"].parent
