"""Words to a working agent: until it has them, against a turn of a warm agent."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.bridge import AGENT, DEMO, BridgeServer, said
from bench.figures import Gap, Goal, Row, Scale, milliseconds, ratios
from bench.history import stored
from bench.machine import exchange
from bench.proof import prove_equal, wait_for

GOAL = 1.0
"""A commit, an answer of the agent and a commit; a turn has more of each."""
DONE = "select count(*) from turn where state = 'done'"
PROMPTED = "select count(*) from turn where state = 'prompted'"
TAKEN = "select count(*) from heard where steered = 'taken'"
READ = "select count(*) from heard where steered = 'read'"


def measure(scale: Scale, folder: Path) -> Iterator[Row | Gap]:
    """Measure turns first, then words that all go into one turn, which must have read them."""
    entry = {"command": [sys.executable, str(DEMO)], "sandbox": "none", "while_busy": "steer"}
    bridge = BridgeServer(folder, settings={"AGENTS_JSON": json.dumps({AGENT: entry})})
    count = scale.cold + 1
    with bridge.server:
        bridge.wait_ready()
        turns = [_until(bridge, f"say hello {each}", DONE, each + 1) for each in range(count)]
        _until(bridge, "hold go", PROMPTED, 1)
        words = [_until(bridge, f"say more {each}", TAKEN, each + 1) for each in range(count)]
        (bridge.data_dir / "workspaces" / f"1-{AGENT}" / "go").touch()
        wait_for(lambda: stored(bridge.data_dir, DONE), count + 1, "turns done")
        prove_equal(stored(bridge.data_dir, READ), count, "words that were read")
    turns, words = turns[1:], words[1:]  # the first ones start the process
    yield Row(
        "words into a running turn, until the agent has them",
        "a turn of a warm agent",
        ratios(words, turns),
        " x",
        Goal("at most", GOAL),
        f"{milliseconds(median(words))} against {milliseconds(median(turns))}",
    )


def _until(bridge: BridgeServer, text: str, query: str, count: int) -> float:
    """Say something and wait until the store shows so many; returns how long that took."""
    began = time.perf_counter()
    prove_equal(exchange(bridge.port, said("t1", text, bridge.port)), 200, "status of a message")
    wait_for(lambda: stored(bridge.data_dir, query), count, query)
    return time.perf_counter() - began
