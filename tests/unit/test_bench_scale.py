"""The load model: its traffic, the sizes calculated from it, its curves, and one small run."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import curves
from bench.arrivals import LONGEST_SECONDS, Traffic
from bench.sizing import PEOPLE, Costs, size
from bench.systems import Step, System, sqlite

COSTS = Costs(bridge=0.03, front=0.02, worker=0.03, database=0.02, stored_bytes=10_000)


def test_traffic_is_the_same_each_time_comes_in_bursts_and_goes_to_few_places() -> None:
    traffic = Traffic(places=100, agents=3, per_second=20, seconds=100)
    messages = list(traffic.messages())

    assert messages == list(traffic.messages())
    assert 1_600 < len(messages) < 2_400
    assert [each.at for each in messages] == sorted(each.at for each in messages)
    busy = sum(each.place < 10 for each in messages)
    assert 0.75 < busy / len(messages) < 0.9
    assert all(1 <= each.work_seconds <= LONGEST_SECONDS for each in messages)
    assert any(each.work_seconds >= 5 for each in messages)


def test_a_company_that_is_larger_never_needs_less() -> None:
    sizes = [size(people, COSTS) for people in PEOPLE]

    assert sizes[0].advice == "one machine, SQLite"
    for smaller, larger in pairwise(sizes):
        assert smaller.workers <= larger.workers
        assert smaller.turns < larger.turns
        assert smaller.gib_per_year < larger.gib_per_year


def test_curves_show_every_system_and_where_it_is_saturated(tmp_path: Path) -> None:
    slow = System("one <bridge>", tmp_path, {}, [])
    slow.steps += [
        Step(1.0, 30, 0.01, 0.02, 0.1, 0.3, 1.0, {"bridge": 0.03, "database": 0.0}),
        Step(2.0, 60, 0.01, 0.02, 1.0, 9.0, 9.0, {"bridge": 0.03, "database": 0.0}),
    ]

    text = curves.markdown([slow], COSTS, "a machine")
    curves.plot([slow], tmp_path / "curves.svg")

    assert slow.borne.per_second == 1.0
    assert "| one <bridge> | 2 (saturated) |" in text
    assert "| 10,000 |" in text
    drawn = ElementTree.parse(tmp_path / "curves.svg")
    assert "one <bridge>" in [each.text for each in drawn.iter()]


@pytest.mark.long
def test_every_message_of_a_run_is_read_once(tmp_path: Path) -> None:
    with sqlite(tmp_path) as system:
        step = system.run(Traffic(places=6, agents=3, per_second=4, seconds=2))

    assert step.messages > 1
    assert step.cpu["bridge"] > 0
