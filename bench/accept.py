"""Durable accept: a signed webhook verified, deduplicated, committed and acknowledged."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from app.store.database import FILE_NAME
from bench.bridge import BridgeServer
from bench.figures import Goal, Row, Scale, milliseconds, ratios
from bench.load import WARM_UP, Outcome, Plan, run
from bench.machine import LOOK_SECONDS, Server, free_port

CONNECTIONS = 32
STARLETTE, GIDGETHUB, BARE = "starlette_route", "gidgethub_route", "bare"
ALONE, WORKING = "accept alone", "accept with intake"


@dataclass
class Receiver:
    """A server that takes webhooks, and how it did in each round."""

    server: Server
    inbox: Path | None = None
    """The database of a bridge that works on what it accepts."""
    outcomes: list[Outcome] = field(default_factory=list)
    single: list[Outcome] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    settled: list[float] = field(default_factory=list)
    """Deliveries per second until all of them were dealt with, round by round."""

    def load(self, scale: Scale) -> None:
        """Put it under load once."""
        before = self.server.cpu_seconds()
        outcome = self._run(CONNECTIONS, scale.deliveries)
        if self.inbox is not None:
            late = _until_settled(self.inbox)
            self.settled.append(scale.deliveries / (outcome.seconds + late))
        self.outcomes.append(outcome)
        taken = scale.deliveries + WARM_UP
        self.cpu.append((self.server.cpu_seconds() - before) / taken)
        self.single.append(self._run(1, scale.single))

    @property
    def rates(self) -> list[float]:
        """Deliveries per second, round by round."""
        return [outcome.per_second for outcome in self.outcomes]

    @property
    def p50(self) -> list[float]:
        """The usual time of one delivery that comes alone, round by round."""
        return [outcome.p50 for outcome in self.single]

    def _run(self, connections: int, count: int) -> Outcome:
        return run(Plan(self.server.port, connections, count, uuid4().hex))


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure the bridge against those who store nothing."""
    with ExitStack() as stack:
        receivers = dict(_receivers(folder))
        for receiver in receivers.values():
            stack.enter_context(receiver.server)
        for _ in range(scale.rounds):
            for receiver in receivers.values():
                receiver.load(scale)
    yield from _rows(receivers)


def _receivers(folder: Path) -> Iterator[tuple[str, Receiver]]:
    for name in (BARE, STARLETTE, GIDGETHUB):
        port = free_port()
        yield name, Receiver(Server(f"bench.receivers.{name}", str(port), port=port))
    yield ALONE, Receiver(BridgeServer(folder / "alone", works=False).server)
    working = BridgeServer(folder / "working")
    yield WORKING, Receiver(working.server, working.data_dir / FILE_NAME)


def _until_settled(inbox: Path) -> float:
    """Wait until nothing in an inbox is new; returns how long that took."""
    began = time.perf_counter()
    database = sqlite3.connect(f"file:{inbox}?mode=ro", uri=True)
    try:
        while database.execute("select 1 from delivery where state = 'new' limit 1").fetchone():
            time.sleep(LOOK_SECONDS)
    finally:
        database.close()
    return time.perf_counter() - began


def _rows(receivers: dict[str, Receiver]) -> Iterator[Row]:
    limit, peer, bare = receivers[STARLETTE], receivers[GIDGETHUB], receivers[BARE]
    alone, working = receivers[ALONE], receivers[WORKING]
    what = f"durable accept, {CONNECTIONS} connections"
    yield _rate(what, "Starlette route, HMAC only", alone, limit, Goal("at least", 0.5))
    yield _rate(what, "gidgethub, stores nothing", alone, peer, Goal("at least", 1.0))
    what += ", intake working along"
    yield _rate(what, "Starlette route, HMAC only", working, limit, None)
    yield _rate(what, "gidgethub, stores nothing", working, peer, None)
    settled = max(working.settled)
    yield Row(
        "accept and intake, until all are dealt with",
        "durable accept alone",
        settled / max(alone.rates),
        " x",
        None,
        f"{settled:,.0f}/s against {max(alone.rates):,.0f}/s, deliveries that concern nobody",
    )
    yield Row(
        "durable accept, one connection, p50",
        "Starlette route, HMAC only",
        min(alone.p50) / min(limit.p50),
        " x",
        None,
        f"{milliseconds(min(alone.p50))} against {milliseconds(min(limit.p50))}, "
        f"gidgethub {milliseconds(min(peer.p50))}, with intake {milliseconds(min(working.p50))}",
    )
    yield _rate("reach of the load", "Starlette route, HMAC only", bare, limit, None)


def _rate(what: str, against: str, ours: Receiver, theirs: Receiver, goal: Goal | None) -> Row:
    best, other = max(ours.rates), max(theirs.rates)
    typical = ratios(ours.rates, theirs.rates)
    return Row(
        what,
        against,
        best / other,
        " x",
        goal,
        f"{best:,.0f}/s against {other:,.0f}/s, median ratio {typical:.2f}, "
        f"{min(ours.cpu) * 1e6:.0f} against {min(theirs.cpu) * 1e6:.0f} µs of CPU each",
    )
