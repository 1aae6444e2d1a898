"""What Prometheus reads: every series from the start, with names only for those signed in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.metrics import COUNTERS, GAUGES, HISTOGRAMS, PREFIX, Metrics, Vital

ROOT = Path(__file__).parents[3]
SERIES = {
    *(f"{PREFIX}{name}_total" for name in COUNTERS),
    *(f"{PREFIX}{name}" for name in (*HISTOGRAMS, *GAUGES)),
}


def read(metrics: Metrics, *vitals: Vital, by_name: bool = True) -> dict[str, dict[str, float]]:
    """Read the value of each series, by its labels."""
    families = text_string_to_metric_families(metrics.text(vitals, by_name=by_name).decode())
    found: dict[str, dict[str, float]] = {}
    for family in families:
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


@pytest.mark.parametrize("by_name", [True, False])
def test_every_series_with_known_labels_is_zero_from_the_start(by_name: bool) -> None:
    metrics = Metrics()
    metrics.know(["demo"], ["slack:demo"])

    found = read(metrics, by_name=by_name)

    owner = "adapter=slack:demo," if by_name else ""
    assert found["agent_bridge_deliveries_total"] == {
        f"{owner}outcome=accepted": 0,
        f"{owner}outcome=refused": 0,
        f"{owner}outcome=unavailable": 0,
    }
    assert {name for name in found if name.startswith(PREFIX)} >= {
        *(f"{PREFIX}{name}_total" for name, (_, _, values) in COUNTERS.items() if values),
        *(f"{PREFIX}{name}_count" for name in HISTOGRAMS),
        *(f"{PREFIX}{name}" for name, (_, labels) in GAUGES.items() if not labels),
    }
    assert found["agent_bridge_turn_phase_seconds_count"] == {
        "phase=preparing": 0,
        "phase=working": 0,
        "phase=shipping": 0,
    }


def test_strangers_see_sums_without_names() -> None:
    metrics = Metrics()
    metrics.count("turns", agent="claude", state="done")
    metrics.count("turns", agent="codex", state="done", amount=2)
    alive = [
        Vital("processes", number, (("agent", name),)) for name, number in (("a", 1), ("b", 2))
    ]

    found = read(metrics, *alive, by_name=False)

    assert found["agent_bridge_turns_total"]["state=done"] == 3
    assert found["agent_bridge_processes"] == {"": 3}
    assert b"claude" not in metrics.text(alive, by_name=False)


def test_durations_are_counted_by_their_label() -> None:
    metrics = Metrics()

    metrics.observe("turn_phase_seconds", 2.0, phase="working")
    metrics.observe("commit_seconds", 0.002)

    found = read(metrics)
    assert found["agent_bridge_turn_phase_seconds_sum"]["phase=working"] == 2.0
    assert found["agent_bridge_commit_seconds_count"] == {"": 1}


@pytest.mark.parametrize("file", ["alerts.yml", "dashboard.json"])
def test_rules_and_dashboard_use_series_that_exist(file: str) -> None:
    text = (ROOT / "examples/monitoring" / file).read_text()
    used = {re.sub(r"_bucket$", "", name) for name in re.findall(rf"{PREFIX}[a-z_]+", text)}

    assert used
    assert used <= SERIES


def test_every_panel_of_the_dashboard_has_a_place_and_a_query() -> None:
    board = json.loads((ROOT / "examples/monitoring/dashboard.json").read_text())

    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)
    assert all(target["expr"] for panel in board["panels"] for target in panel["targets"])


def test_the_docs_describe_every_series() -> None:
    described = (ROOT / "docs/monitoring.md").read_text()

    assert {name for name in SERIES if f"`{name}`" not in described} == set()
