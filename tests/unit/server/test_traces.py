"""The exporter of traces: it obeys the usual variables and never holds the bridge up."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.config import load
from app.errors import ConfigurationError
from app.main import open_resources
from app.traces import Tracer
from tests.support.collector import Collector

KEY = SecretStr("key-of-the-bridge-for-tests-0123456789")


def tracer(collector: Collector) -> Tracer:
    """Make an exporter for a collector."""
    url = collector.settings["OTEL_EXPORTER_OTLP_ENDPOINT"]
    return Tracer(url, SecretStr(f"x-key={collector.key}"), KEY)


def test_two_members_export_into_one_trace() -> None:
    with Collector() as collector:
        one, other = tracer(collector), tracer(collector)
        one.record("queue", 7, 1.0, 2.0, {})
        other.record("turn", 7, 1.0, 3.0, {"state": "failed"})
        one.close()
        other.close()

    queue, turn = sorted(collector.spans, key=lambda span: span.name)
    assert queue.trace == turn.trace
    assert (queue.parent, turn.parent) == (turn.id, "")
    assert (queue.is_error, turn.is_error) == (False, True)


def test_the_usual_variables_choose_names_and_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "bridge-of-acme")
    with Collector() as collector:
        named = tracer(collector)
        named.record("turn", 1, 1.0, 2.0, {})
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
        silent = tracer(collector)
        silent.record("turn", 2, 1.0, 2.0, {})
        named.close()
        silent.close()

    assert [(span.service, span.facts) for span in collector.spans] == [
        ("bridge-of-acme", {"agent_bridge.turn": 1})
    ]


@pytest.mark.long
def test_a_collector_that_does_not_answer_holds_the_end_up_for_seconds_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        lost = Tracer(f"http://127.0.0.1:{deaf.getsockname()[1]}", None, KEY)
        lost.record("turn", 1, 1.0, 2.0, {})
        began = time.monotonic()
        lost.close()

    assert time.monotonic() - began < 30


def test_without_the_extra_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "app.traces", None)
    given = {"PATH": "", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    configuration = load(given, home=tmp_path)

    with (
        pytest.raises(ConfigurationError, match=r"agent-bridge\[traces\]"),
        open_resources(configuration),
    ):
        pass
