"""The record of a bridge: complete, once, over crashes, and from a commit to who allowed it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.scenarios.test_command_line import Machine
from tests.support.invariants import violations
from tests.support.nursery import nursery
from tests.support.observe import Observed, demo
from tests.support.platform import Platform
from tests.support.world import World

STORY = """\
write notes.txt kept
run true"""


@pytest.mark.parametrize(
    ("when", "nth"),
    [
        ("before", 1),
        ("after", 1),
        pytest.param("before", 2, marks=pytest.mark.long),
        pytest.param("after", 2, marks=pytest.mark.long),
        pytest.param("after", 3, marks=pytest.mark.long),
    ],
)
def test_each_thing_is_recorded_once_when_the_bridge_is_killed_while_it_records(
    tmp_path: Path, when: Literal["before", "after"], nth: int
) -> None:
    with World(tmp_path, deadly=True) as world:
        world.say("t1", "say hello")
        world.settle()
        world.bridge.arm("record.follow", when, nth)
        world.say("t1", STORY)
        world.settle(lambda: world.deaths == 1)
        world.say("t1", STORY)
        world.settle()
        world.end()

        assert violations(world) == []
        kinds = world.bridge.rows("select distinct kind from record order by kind")
        assert kinds == [("begin",), ("call",), ("decision",), ("post",)]


def rows_of(bridge: Observed, **query: Any) -> list[dict[str, Any]]:
    answer = bridge.http.get("/api/v1/record", params={"limit": 500, **query})
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items[::-1]


def test_the_record_says_who_asked_who_allowed_and_what_ran(tmp_path: Path) -> None:
    with Platform() as platform, Observed(tmp_path, platform, agents={"demo": demo()}) as bridge:
        number = bridge.begin("t1", "run echo hi\nsay ran", speaker="Cleo")
        (ask,) = bridge.open_asks()
        bridge.answer(ask)
        assert bridge.end("t1", number)["state"] == "done"

        decision, call = (rows_of(bridge, kind=kind)[0] for kind in ("decision", "call"))
        assert (decision["outcome"], decision["decided_by"]) == ("allowed", "Ann")
        assert (decision["asked_by"], decision["what"]) == ("Cleo", "echo hi")
        assert (call["outcome"], call["decided_by"], call["ref"]) == (
            *("completed", "Ann", f"ask:{ask}"),
        )
        assert (call["agent"], call["place"], call["turn"]) == ("demo", "web:t1", decision["turn"])
        assert "echo hi" in call["what"]
        assert {row["kind"] for row in rows_of(bridge, person="cleo")} >= {"decision", "call"}
        assert rows_of(bridge, person="nobody") == []
        assert rows_of(bridge, turn=call["turn"])[0]["turn"] == call["turn"]


def test_an_export_is_checked_without_a_bridge_and_each_change_to_it_is_named(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    export, earlier = tmp_path / "record.jsonl", tmp_path / "earlier.jsonl"
    with machine.serving():
        assert machine.run("ask", "run echo hi", "--allow", "once", "-q").returncode == 0
        assert machine.run("audit", "export", str(earlier)).returncode == 0
        assert machine.run("ask", "run echo ho", "--allow", "once", "-q").returncode == 0
        listed = machine.run("audit", "list")
        exported = machine.run("audit", "export", str(export))
        again = machine.run("audit", "export", str(export))
        whole = machine.run("audit", "verify", "--json")

    assert "echo hi" in listed.stdout
    assert (exported.returncode, again.returncode) == (0, 1)
    assert "exists" in again.stderr
    found = json.loads(whole.stdout)
    assert (whole.returncode, found["flaw"]) == (0, None)
    assert found["rows"] >= 5
    lines = export.read_text().splitlines(keepends=True)
    assert len(lines) == found["rows"] + 1

    def verify(*words: str) -> tuple[int, str]:
        # Nothing of the bridge is there: no settings, no data.
        empty = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}
        done = nursery().run("audit", "verify", *words, environment=empty, cwd=tmp_path)
        return done.returncode, done.stdout

    broken = tmp_path / "broken.jsonl"

    def told(*changed: str) -> tuple[int, str]:
        broken.write_text("".join(changed))
        return verify(str(broken))

    assert verify(str(export), "--after", str(earlier)) == (
        0,
        f"The record is whole: {found['rows']} rows, the last one is {found['head']}.\n",
    )
    forged = lines[3].replace("completed", "failed   ").replace("allowed", "refused")
    assert forged != lines[3]
    tail = " What is before it is right.\n"
    assert told(*lines[:3], forged, *lines[4:]) == (1, f"Row 3 was changed.{tail}")
    assert told(*lines[:3], *lines[4:]) == (1, f"Row 3 was removed.{tail}")
    assert told(*lines[:3], lines[4], lines[3], *lines[5:]) == (
        *(1, f"Row 3 is not in its place.{tail}"),
    )
    assert told(*lines[:4], lines[3], *lines[4:]) == (1, f"Row 3 was inserted.{tail}")
    assert verify(str(earlier), "--after", str(export))[0] == 1
    assert verify(str(tmp_path / "missing"))[0] == 1
