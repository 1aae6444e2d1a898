"""Socket Mode: a frame kept and acknowledged, against those who only acknowledge it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.figures import Goal, Row, Scale, ratios
from bench.frames import Plan, run
from bench.machine import Server, free_port

BRIDGE, LOOP, BOLT = "socket_bridge", "socket_loop", "socket_bolt"


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure the bridge's line against a bare loop and against slack-bolt."""
    rates: dict[str, list[float]] = {BRIDGE: [], LOOP: [], BOLT: []}
    for number in range(scale.rounds):
        for name, found in rates.items():
            port = free_port()
            data = folder / f"{name}-{number}"
            data.mkdir()
            receiver = Server(
                f"bench.receivers.{name}", str(port), str(data), port=port, log=data / "log"
            )
            with receiver:
                found.append(run(Plan(port, scale.deliveries)).per_second)
    what = "Socket Mode, kept and acknowledged"
    yield _row(what, "bare aiohttp loop, stores nothing", rates[BRIDGE], rates[LOOP], 0.45)
    yield _row(what, "slack-bolt, stores nothing", rates[BRIDGE], rates[BOLT], 3.0)


def _row(what: str, against: str, ours: list[float], theirs: list[float], goal: float) -> Row:
    detail = (
        f"{max(ours):,.0f}/s against {max(theirs):,.0f}/s, median ratio {ratios(ours, theirs):.2f}"
    )
    figure = max(ours) / max(theirs)
    return Row(what, against, figure, " x", Goal("at least", goal), detail)
