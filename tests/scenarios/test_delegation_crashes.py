"""Kill -9 at every step of what one agent asks another: it is done once, and the answer arrives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from tests.support.bridge import demo
from tests.support.invariants import leftovers
from tests.support.variants import quick
from tests.support.world import World

Step = tuple[str, int, Literal["before", "after"]]

CALLER: list[Step] = [
    ("delegation.begin", 1, "before"),
    ("delegation.begin", 1, "after"),
]
CHILD: list[Step] = [
    ("turns.starting", 2, "before"),
    ("turns.starting", 2, "after"),
    ("processes.started", 2, "after"),
    ("turns.prompted", 2, "before"),
    ("turns.prompted", 2, "after"),
    ("transcript.append.text", 1, "after"),
    ("turns.finish", 1, "before"),
    ("turns.finish", 1, "after"),
    ("delegation.told", 1, "before"),
    ("delegation.told", 1, "after"),
]
SYNC = [("sync", step) for step in (*CALLER, *CHILD)]
# In the background either of the two may end first.
ASYNC = [("async", step) for step in (*CALLER, *CHILD[:6])]
FIRST = [SYNC[1], ASYNC[1], SYNC[6], SYNC[9]]
CASES = [*FIRST, *(each for each in (*SYNC, *ASYNC) if each not in FIRST)]
NAMED = {"-".join((mode, *map(str, step))): (mode, step) for mode, step in CASES}


@pytest.mark.parametrize(("mode", "step"), quick(4, NAMED))
def test_the_child_goes_on_and_nothing_is_done_twice(tmp_path: Path, mode: str, step: Step) -> None:
    name, nth, when = step
    call = {"to": "codex", "text": "write made.txt once\nsay precious words", "mode": mode}
    world = World(tmp_path, deadly=True)
    world.bridge.agents["demo"] |= {"agents_allow": ["codex"]}
    world.bridge.agents["codex"] = demo(*world.bridge.deadly, permissions="trusted")
    with world:
        world.bridge.arm(name, when, nth=nth)

        world.say("t1", f"tool agents_message {json.dumps(call)}")
        world.settle(lambda: world.deaths == 1)
        world.end()

        rows = world.bridge.rows
        assert rows("select count(*) from delegation") == [(1,)]
        assert rows("select state from turn order by id") == [("done",), ("done",)]
        known = rows("select prompt from turn where id = 1")
        known += rows("select data from transcript where turn = 1 and kind = 'tool'")
        assert mode == "async" or any("precious words" in text for (text,) in known)
        assert list(leftovers(world)) == []
