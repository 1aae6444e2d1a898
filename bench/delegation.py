"""What another agent adds: a turn that asks a warm agent and waits, against a turn of its own."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from app.store.database import FILE_NAME
from bench.bridge import AGENT, DEMO, BridgeServer, said
from bench.figures import Gap, Goal, Row, Scale, milliseconds, ratios
from bench.history import stored
from bench.machine import exchange
from bench.proof import prove_equal, wait_for

GOAL = 5.0
"""Two turns, each with its commits, and a tool call for which the demo agent looks every 20 ms."""
OTHER = "other"
DONE = "select count(*) from turn where state = 'done'"
TOOK = "select ended_at - created_at from turn where surface = 1 order by id desc limit 1"
ANSWERED = "select count(*) from delegation where told_at is not null"


def measure(scale: Scale, folder: Path) -> Iterator[Row | Gap]:
    """Measure turns of both kinds in one conversation, one after another."""
    entry = {"command": [sys.executable, str(DEMO)], "sandbox": "none", "mode": "free"}
    # The last one hears the messages: all have one path here.
    agents = {OTHER: entry, AGENT: entry}
    bridge = BridgeServer(folder, settings={"AGENTS_JSON": json.dumps(agents)})
    direct: list[float] = []
    asking: list[float] = []
    with bridge.server:
        bridge.wait_ready()
        for number in range(scale.cold + 1):
            # No two messages are alike: an equal one would be a replay.
            words = f"say hello {number}"
            ask = json.dumps({"to": OTHER, "text": words})
            direct.append(_turn(bridge, words, 1))
            asking.append(_turn(bridge, f"tool agents_message {ask}", 2))
        prove_equal(stored(bridge.data_dir, ANSWERED), scale.cold + 1, "answers")
    direct, asking = direct[1:], asking[1:]  # the first ones start the processes
    yield Row(
        "a turn that asks a warm agent and waits",
        "a turn",
        ratios(asking, direct),
        " x",
        Goal("at most", GOAL),
        f"{milliseconds(median(asking))} against {milliseconds(median(direct))}",
    )


def _turn(bridge: BridgeServer, text: str, turns: int) -> float:
    """Say something and wait until so many more turns are done; returns how long the first took."""
    before = stored(bridge.data_dir, DONE)
    prove_equal(exchange(bridge.port, said("t1", text, bridge.port)), 200, "status of a message")
    wait_for(lambda: stored(bridge.data_dir, DONE), before + turns, "turns done")
    store = f"file:{bridge.data_dir / FILE_NAME}?mode=ro"
    with closing(sqlite3.connect(store, uri=True)) as database:
        return float(database.execute(TOOK).fetchone()[0])
