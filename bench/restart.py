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
from bench.history import fill, make, stored
from bench.machine import exchange, free_port
from bench.proof import prove_equal
from bench.webhooks import comments

START = "-m", "bench.receivers.starlette_route"
SERVE = "-m", "app", "serve"
DELIVERED = "select count(*) from delivery where delivery_id = ?"
SESSIONS = "select count(*) from session"


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
        name = f"start-{time.monotonic_ns()}"
        request = comments(1, name, self.bridge.port)[0]
        began = time.perf_counter()
        self.bridge.server.start()
        prove_equal(exchange(self.bridge.port, request), 200, "answer to the first webhook")
        self.accepting.append(time.perf_counter() - began)
        self.bridge.wait_ready()
        self.ready.append(time.perf_counter() - began)
        self.core.append(self.bridge.server.cpu_seconds())
        self.bridge.server.kill()
        kept = stored(self.bridge.data_dir, DELIVERED, f"{name}-0")
        prove_equal(kept, 1, "acknowledged deliveries that outlived a kill -9")

    def prove_full(self, sessions: int) -> None:
        """Make sure that it was this many sessions that were started with."""
        prove_equal(stored(self.bridge.data_dir, SESSIONS), sessions, "sessions in the store")


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure starts on a full store against starts on an empty one."""
    full = Store(prepared(folder / "full", scale.sessions))
    empty = Store(prepared(folder / "empty", 0))
    for _ in range(scale.starts):
        full.start()
        empty.start()
    full.prove_full(scale.sessions)
    empty.prove_full(0)
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
        ours.append(first_answer(SERVE, environment, port, folder))
        theirs.append(first_answer((*START, str(port), str(folder / "tally")), path, port, folder))
    yield Row(
        "start of `agent-bridge serve`, until the first answer",
        "a bare Starlette route",
        min(ours) / min(theirs),
        " x",
        None,
        f"{milliseconds(min(ours))} against {milliseconds(min(theirs))}, "
        f"median ratio {ratios(ours, theirs):.2f}",
    )


def first_answer(
    command: Sequence[str], environment: Mapping[str, str], port: int, folder: Path
) -> float:
    """Start a server and tell how long its first answer took, which must be a good one.

    Raises:
        Unproven: it was not.
    """
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
            status = exchange(port, head.encode(), patient=True)
            took = time.perf_counter() - began
            prove_equal(status, 200, f"first answer of {command[1]}")
            return took
        finally:
            server.kill()


def prepared(folder: Path, sessions: int) -> BridgeServer:
    """Make a store with its schema and so many sessions."""
    bridge = BridgeServer(folder)
    make(bridge.data_dir)
    if sessions:
        fill(bridge.data_dir, sessions)
    return bridge
