"""Memory of the bridge itself: per parked session, and per agent that lives and waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.bridge import BridgeServer, said
from bench.figures import Goal, Row, Scale
from bench.history import stored
from bench.machine import exchange
from bench.proof import prove_equal, wait_for
from bench.restart import prepared

SESSIONS = "select count(*) from session"
DONE = "select count(*) from turn where state = 'done'"
ALIVE = "select count(*) from process"


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure what one more session costs."""
    yield _parked(scale, folder)
    yield _live(scale, folder)


def _parked(scale: Scale, folder: Path) -> Row:
    bridges = prepared(folder / "full", scale.sessions), prepared(folder / "empty", 0)
    looks = [tuple(_resting(bridge, scale) for bridge in bridges) for _ in range(scale.looks)]
    prove_equal(stored(bridges[0].data_dir, SESSIONS), scale.sessions, "parked sessions")
    full, empty = (median(each) for each in zip(*looks, strict=True))
    return Row(
        "memory per parked session",
        "an empty store",
        max(0.0, (full - empty) / scale.sessions / 1024),
        " KiB",
        Goal("at most", 1.0),
        f"{full / 2**20:.1f} against {empty / 2**20:.1f} MiB with {scale.sessions:,} sessions",
    )


def _resting(bridge: BridgeServer, scale: Scale) -> int:
    """Start a bridge and look at it once it rests."""
    with bridge.server as server:
        bridge.wait_ready()
        time.sleep(scale.rest_seconds)
        return server.own_bytes()


def _live(scale: Scale, folder: Path) -> Row:
    bridge = BridgeServer(folder / "live", settings={"MAX_TURNS": "8"})
    with bridge.server as server:
        bridge.wait_ready()
        _bring_to_life(bridge, 0, scale.warm_live, scale)
        before = server.own_bytes()
        _bring_to_life(bridge, scale.warm_live, scale.live, scale)
        after = server.own_bytes()
    return Row(
        "memory per live idle session, without the agent",
        f"{scale.warm_live} sessions",
        max(0.0, (after - before) / scale.live / 1024),
        " KiB",
        Goal("at most", 64.0),
        f"{after / 2**20:.1f} against {before / 2**20:.1f} MiB with {scale.live} sessions more",
    )


def _bring_to_life(bridge: BridgeServer, first: int, count: int, scale: Scale) -> None:
    """Have a short turn in each of so many new places."""
    for number in range(first, first + count):
        answer = exchange(bridge.port, said(f"live{number}", "say hello", bridge.port))
        prove_equal(answer, 200, "answer to a message")
    prove_alive(bridge.data_dir, first + count, scale)


def prove_alive(data_dir: Path, count: int, scale: Scale) -> None:
    """Make sure that so many turns are done, and that the agent of each lives on.

    Raises:
        Unproven: one is not done, or an agent is gone.
    """
    wait_for(lambda: stored(data_dir, DONE), count, "turns done")
    time.sleep(scale.rest_seconds)
    prove_equal(stored(data_dir, ALIVE), count, "agents that live")
