"""A bridge on PostgreSQL against the same bridge on SQLite: accept, event to prompt, idle CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import psycopg

from bench.accept import CONNECTIONS, KEPT, Receiver
from bench.bridge import BridgeServer
from bench.cold import ANSWERED, ANYWHERE, WARM_UP, through_bridge
from bench.figures import Gap, Goal, Row, Scale, milliseconds, ratios
from bench.history import stored
from bench.postgres import MISSING, PostgresServer, postgres_server
from tests.support.postgres import find_programs

FILE, SERVER = "SQLite", "PostgreSQL"
AGAINST = "the same bridge on SQLite"
IDLE_SECONDS = 30.0
"""Long enough for every pace of an idle bridge to come round several times."""
SETTLE_SECONDS = 15.0
"""How long after its start a bridge still does what it does once."""

Count = Callable[..., int]


def measure(scale: Scale, folder: Path) -> Iterator[Row | Gap]:
    """Measure both alternately, round after round."""
    if find_programs() is None:
        yield Gap(f"{SERVER} against {FILE}", MISSING, failed=False)
        return
    with postgres_server() as server:
        yield _measure_accept(scale, folder, server)
        yield _measure_turns(scale, folder, server)
    # Another one: this one still tidies up after what it had to do.
    with postgres_server() as server:
        yield _measure_idle(folder, server)


def _measure_accept(scale: Scale, folder: Path, server: PostgresServer) -> Row:
    address = server.create("accept")
    on_file = BridgeServer(folder / "file", works=False)
    there = BridgeServer(folder / "server", works=False, settings={"DATABASE_URL": address})
    receivers = {
        FILE: Receiver(on_file.server, partial(stored, on_file.data_dir, KEPT)),
        SERVER: Receiver(there.server, partial(count_on_server, address, KEPT)),
    }
    with ExitStack() as stack:
        for receiver in receivers.values():
            stack.enter_context(receiver.server)
        for _ in range(scale.rounds):
            for receiver in receivers.values():
                receiver.load(scale)
    ours, theirs = receivers[SERVER].rates, receivers[FILE].rates
    return Row(
        f"durable accept on {SERVER}, {CONNECTIONS} connections",
        AGAINST,
        max(ours) / max(theirs),
        " x",
        Goal("at least", 0.5),
        f"{max(ours):,.0f}/s against {max(theirs):,.0f}/s, "
        f"median ratio {ratios(ours, theirs):.2f}, one connection p50 "
        f"{milliseconds(min(receivers[SERVER].p50))} against "
        f"{milliseconds(min(receivers[FILE].p50))}",
    )


def _measure_turns(scale: Scale, folder: Path, server: PostgresServer) -> Row:
    address = server.create("turns")
    bridges = _pair(folder / "turns", address)
    counts: dict[str, Count] = {
        FILE: partial(stored, bridges[FILE].data_dir),
        SERVER: partial(count_on_server, address),
    }
    taken: dict[str, list[float]] = {name: [] for name in bridges}
    with ExitStack() as stack:
        for bridge in bridges.values():
            stack.enter_context(bridge.server)
            bridge.wait_ready()
        for number in range(-WARM_UP, scale.cold):
            for name, bridge in bridges.items():
                seconds = through_bridge(bridge, number, partial(counts[name], ANSWERED))
                if number >= 0:
                    taken[name].append(seconds)
    ours, theirs = taken[SERVER], taken[FILE]
    return Row(
        f"event to prompt read on {SERVER}",
        AGAINST,
        min(ours) / min(theirs),
        " x",
        Goal("at most", 1.5),
        f"{milliseconds(min(ours))} against {milliseconds(min(theirs))}, "
        f"medians {milliseconds(median(ours))} against {milliseconds(median(theirs))}",
    )


def _measure_idle(folder: Path, server: PostgresServer) -> Row:
    """Measure bridges without any conversation, and the server of one of them."""
    bridges = _pair(folder / "idle", server.create("idle"))
    with ExitStack() as stack:
        for bridge in bridges.values():
            stack.enter_context(bridge.server)
            bridge.wait_ready()
        time.sleep(SETTLE_SECONDS)
        clocks = {name: bridge.server.cpu_seconds for name, bridge in bridges.items()}
        spent = _spend({**clocks, "behind": server.cpu_seconds})
    return Row(
        f"an idle bridge on {SERVER}",
        "one core",
        (spent[SERVER] + spent["behind"]) * 100,
        " %",
        Goal("at most", 1.0),
        f"{spent[SERVER] * 100:.2f} % the bridge and {spent['behind'] * 100:.2f} % the server; "
        f"with {FILE} it is {spent[FILE] * 100:.2f} %",
    )


def _pair(folder: Path, address: str) -> dict[str, BridgeServer]:
    return {
        FILE: BridgeServer(folder / "file", core=ANYWHERE),
        SERVER: BridgeServer(folder / "server", core=ANYWHERE, settings={"DATABASE_URL": address}),
    }


def _spend(clocks: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Measure the parts of a core that some things take while nothing happens."""
    before, began = {name: clock() for name, clock in clocks.items()}, time.perf_counter()
    time.sleep(IDLE_SECONDS)
    after, took = {name: clock() for name, clock in clocks.items()}, time.perf_counter() - began
    return {name: (after[name] - before[name]) / took for name in clocks}


def count_on_server(address: str, query: str, *values: object) -> int:
    """Ask the store of a bridge for a number."""
    with psycopg.connect(address) as connection:
        found = connection.execute(query.replace("?", "%s"), values).fetchone()
        return int(found[0]) if found else 0
