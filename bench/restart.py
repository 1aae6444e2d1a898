"""Restart: how soon a bridge is back after kill -9, with many sessions and with none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.bridge import DEMO, BridgeServer, surroundings
from bench.figures import Goal, Row, Scale, milliseconds, ratios
from bench.history import fill
from bench.machine import exchange, free_port
from bench.webhooks import comments

START = "-m", "bench.receivers.starlette_route"
SERVE = "-m", "app", "serve"


@dataclass
class Store:
    """A bridge on one store, and how long each of its starts took."""

    bridge: BridgeServer
    accepting: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    core: list[float] = field(default_factory=list)
    """What a start until ready cost on the core."""

    def start(self) -> None:
        """Start it after a kill -9 and follow it until it works again."""
        request = comments(1, f"start-{time.monotonic_ns()}", self.bridge.port)[0]
        began = time.perf_counter()
        self.bridge.server.start()
        assert exchange(self.bridge.port, request) == 200
        self.accepting.append(time.perf_counter() - began)
        self.bridge.wait_ready()
        self.ready.append(time.perf_counter() - began)
        self.core.append(self.bridge.server.cpu_seconds())
        self.bridge.server.kill()


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure starts on a full store against starts on an empty one."""
    full = Store(prepared(folder / "full", scale.sessions))
    empty = Store(prepared(folder / "empty", 0))
    for _ in range(scale.starts):
        full.start()
        empty.start()
    core = f"{milliseconds(min(full.core))} against {milliseconds(min(empty.core))} of CPU"
    for step, ours, theirs in (
        ("accepting", full.accepting, empty.accepting),
        ("ready", full.ready, empty.ready),
    ):
        yield Row(
            f"restart with {scale.sessions:,} sessions, until {step}",
            "an empty store",
            min(ours) / min(theirs),
            " x",
            Goal("at most", 1.1),
            f"{milliseconds(min(ours))} against {milliseconds(min(theirs))}, "
            f"median ratio {ratios(ours, theirs):.2f}, {core}",
        )


def measure_start(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure `agent-bridge serve` against a bare Starlette route, until the first answer."""
    prepared(folder, 0)
    port = free_port()
    environment = surroundings(folder, port, [str(DEMO)], "none")
    path = {"PATH": os.environ["PATH"]}
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(scale.starts):
        ours.append(_first_answer(SERVE, environment, port, folder))
        theirs.append(_first_answer((*START, str(port)), path, port, folder))
    yield Row(
        "start of `agent-bridge serve`, until the first answer",
        "a bare Starlette route",
        min(ours) / min(theirs),
        " x",
        None,
        f"{milliseconds(min(ours))} against {milliseconds(min(theirs))}, "
        f"median ratio {ratios(ours, theirs):.2f}",
    )


def _first_answer(
    command: Sequence[str], environment: Mapping[str, str], port: int, folder: Path
) -> float:
    began = time.perf_counter()
    with (
        (folder / "start.log").open("a") as log,
        subprocess.Popen(
            [sys.executable, *command],
            env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=folder,
            stdout=log,
            stderr=log,
        ) as server,
    ):
        head = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        try:
            exchange(port, head.encode(), patient=True)
            return time.perf_counter() - began
        finally:
            server.kill()


def prepared(folder: Path, sessions: int) -> BridgeServer:
    """Make a store with its schema and so many sessions."""
    bridge = BridgeServer(folder)
    bridge.server.start()
    bridge.server.stop()
    if sessions:
        fill(bridge.data_dir, sessions)
    return bridge
