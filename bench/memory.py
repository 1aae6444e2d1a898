"""Memory of the bridge itself: per parked session, and per agent that lives and waits."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.bridge import BridgeServer, said
from bench.figures import Goal, Row, Scale
from bench.machine import LOOK_SECONDS, exchange
from bench.restart import prepared

SETTLE_SECONDS = 2.0
"""Until a bridge that is ready has done what it does once: imports, the isolation probe."""
TURN_SECONDS = 120.0
"""How long all turns together may take on a busy machine."""
LOOKS = 3
"""How often both are started; one start differs from the next by some hundred KiB."""
WARM = 10
"""Sessions that live before the first look: they pay for what is made once."""


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure what one more session costs."""
    yield _parked(scale, folder)
    yield _live(scale, folder)


def _parked(scale: Scale, folder: Path) -> Row:
    bridges = prepared(folder / "full", scale.sessions), prepared(folder / "empty", 0)
    looks = [tuple(_resting(bridge) for bridge in bridges) for _ in range(LOOKS)]
    full, empty = (median(each) for each in zip(*looks, strict=True))
    return Row(
        "memory per parked session",
        "an empty store",
        max(0.0, (full - empty) / scale.sessions / 1024),
        " KiB",
        Goal("at most", 1.0),
        f"{full / 2**20:.1f} against {empty / 2**20:.1f} MiB with {scale.sessions:,} sessions",
    )


def _resting(bridge: BridgeServer) -> int:
    """Start a bridge and look at it once it rests."""
    with bridge.server as server:
        bridge.wait_ready()
        time.sleep(SETTLE_SECONDS)
        return server.own_bytes()


def _live(scale: Scale, folder: Path) -> Row:
    bridge = BridgeServer(folder / "live", settings={"MAX_TURNS": "8"})
    with bridge.server as server:
        bridge.wait_ready()
        _bring_to_life(bridge, 0, WARM)
        before = server.own_bytes()
        _bring_to_life(bridge, WARM, scale.live)
        after = server.own_bytes()
    return Row(
        "memory per live idle session, without the agent",
        f"{WARM} sessions",
        max(0.0, (after - before) / scale.live / 1024),
        " KiB",
        Goal("at most", 64.0),
        f"{after / 2**20:.1f} against {before / 2**20:.1f} MiB with {scale.live} sessions more",
    )


def _bring_to_life(bridge: BridgeServer, first: int, count: int) -> None:
    """Have a short turn in new places and wait until all of them are done."""
    for number in range(first, first + count):
        assert exchange(bridge.port, said(f"live{number}", "say hello", bridge.port)) == 200
    deadline = time.monotonic() + TURN_SECONDS
    while _done(bridge) < first + count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all turns were done, see {bridge.log}")
        time.sleep(LOOK_SECONDS * 10)
    time.sleep(SETTLE_SECONDS)


def _done(bridge: BridgeServer) -> int:
    path = f"file:{bridge.data_dir / 'bridge.db'}?mode=ro"
    database = sqlite3.connect(path, uri=True)
    try:
        found: int = database.execute("select count(*) from turn where state = 'done'").fetchone()[
            0
        ]
        return found
    finally:
        database.close()
