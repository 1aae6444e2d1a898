"""Durable accept: a signed webhook verified, deduplicated, committed and acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import uuid4

from bench.bridge import BridgeServer
from bench.figures import Goal, Row, Scale, milliseconds, ratios
from bench.history import stored
from bench.load import Outcome, Plan, run
from bench.machine import Server, exchange, free_port
from bench.proof import prove, prove_equal, wait_for
from bench.tally import counted
from bench.webhooks import request

CONNECTIONS = 32
STARLETTE, GIDGETHUB, BARE = "starlette_route", "gidgethub_route", "bare"
KEPT = "select count(*) from delivery"
SETTLED = "select count(*) from delivery where state = 'done'"
ALONE, WORKING = "accept alone", "accept with intake"


@dataclass
class Receiver:
    """A server that takes webhooks, and how it did in each round."""

    server: Server
    taken: Callable[[], int]
    """How many deliveries it has dealt with by now."""
    works: bool = False
    """Whether it goes on with what it has accepted."""
    outcomes: list[Outcome] = field(default_factory=list)
    single: list[Outcome] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    settled: list[float] = field(default_factory=list)
    """Deliveries per second until all of them were dealt with, round by round."""

    def load(self, scale: Scale) -> None:
        """Put it under load once."""
        before = self.server.cpu_seconds()
        outcome, late = self._run(CONNECTIONS, scale.deliveries, scale.warm_up)
        if self.works:
            self.settled.append(scale.deliveries / (outcome.seconds + late))
        self.outcomes.append(outcome)
        taken = scale.deliveries + scale.warm_up
        self.cpu.append((self.server.cpu_seconds() - before) / taken)
        self.single.append(self._run(1, scale.single, scale.warm_up)[0])

    def prove_checking(self) -> None:
        """Make sure that it refuses what is not signed, as all do that are compared."""
        before = self.taken()
        forged = request({"action": "created"}, uuid4().hex, self.server.port, forged=True)
        prove(exchange(self.server.port, forged) >= 400, "a forged webhook was accepted")
        prove_equal(self.taken(), before, "deliveries after a forged one")

    @property
    def rates(self) -> list[float]:
        """Deliveries per second, round by round."""
        return [outcome.per_second for outcome in self.outcomes]

    @property
    def p50(self) -> list[float]:
        """The usual time of one delivery that comes alone, round by round."""
        return [outcome.p50 for outcome in self.single]

    def _run(self, connections: int, count: int, warm_up: int) -> tuple[Outcome, float]:
        """Send so many webhooks; returns what came of it, and how long the work took after that."""
        before = self.taken()
        outcome = run(Plan(self.server.port, connections, count, warm_up, uuid4().hex))
        began = time.perf_counter()
        wait_for(self.taken, before + count + warm_up, "deliveries dealt with")
        return outcome, time.perf_counter() - began


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure the bridge against those who store nothing."""
    with ExitStack() as stack:
        receivers = dict(_receivers(folder))
        for receiver in receivers.values():
            stack.enter_context(receiver.server)
        for _ in range(scale.rounds):
            for receiver in receivers.values():
                receiver.load(scale)
        for name in set(receivers) - {BARE}:
            receivers[name].prove_checking()
    yield from _rows(receivers)


def _receivers(folder: Path) -> Iterator[tuple[str, Receiver]]:
    for name in (BARE, STARLETTE, GIDGETHUB):
        port, tally = free_port(), folder / f"{name}.tally"
        server = Server(f"bench.receivers.{name}", str(port), str(tally), port=port)
        yield name, Receiver(server, partial(counted, tally))
    alone = BridgeServer(folder / "alone", works=False)
    yield ALONE, Receiver(alone.server, partial(stored, alone.data_dir, KEPT))
    working = BridgeServer(folder / "working")
    yield WORKING, Receiver(working.server, partial(stored, working.data_dir, SETTLED), works=True)


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
        f"{settled:,.0f}/s against {max(alone.rates):,.0f}/s, deliveries for no agent",
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
