"""Makes the load: sends ready-made webhooks over some connections, each after the answer before.

A program of its own, so that it can have a core of its own: `python -m bench.load` with a plan as
JSON; it prints what came of it as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median, quantiles
from typing import cast

import httptools
import uvloop

from bench.machine import LOAD_CORE, output_of, pin
from bench.proof import prove_equal
from bench.webhooks import comments

ANSWER_SECONDS = 60.0
"""How long all answers of a run may take on a busy machine."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send where."""

    port: int
    connections: int
    count: int
    warm_up: int
    """Requests before the clock starts: connections, caches, first pages of files."""
    seed: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    per_second: float
    p50: float
    p99: float
    seconds: float
    accepted: int
    """Of all requests, those of the warm-up too."""


def run(plan: Plan) -> Outcome:
    """Make a load and return what came of it.

    Raises:
        Unproven: not everything was accepted, so the figures would mean nothing.
    """
    outcome = Outcome(**json.loads(output_of("bench.load", json.dumps(asdict(plan)))))
    prove_equal(outcome.accepted, plan.count + plan.warm_up, "webhooks accepted")
    return outcome


class _Connection(asyncio.Protocol):
    """One connection: the next request leaves when the last one is answered."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Event) -> None:
        self._requests = requests
        self._done = done
        self._parser = httptools.HttpResponseParser(self)
        self._sent = 0.0
        self.latencies: list[float] = []
        self.accepted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.latencies.append(time.perf_counter() - self._sent)
        self.accepted += self._parser.get_status_code() < 300
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._done.set()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._done.set()
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(request)


def _the(connection: _Connection) -> _Connection:
    return connection


async def _send(plan: Plan, requests: list[bytes]) -> list[_Connection]:
    waiting = iter(requests)
    loop = asyncio.get_running_loop()
    made: list[tuple[_Connection, asyncio.Event]] = []
    for _ in range(plan.connections):
        done = asyncio.Event()
        connection = _Connection(waiting, done)
        await loop.create_connection(partial(_the, connection), "127.0.0.1", plan.port)
        made.append((connection, done))
    async with asyncio.timeout(ANSWER_SECONDS):
        for _, done in made:
            await done.wait()
    return [connection for connection, _ in made]


async def _measure(plan: Plan) -> Outcome:
    warm = await _send(plan, comments(plan.warm_up, f"{plan.seed}-warm", plan.port))
    requests = comments(plan.count, plan.seed, plan.port)
    began = time.perf_counter()
    connections = await _send(plan, requests)
    seconds = time.perf_counter() - began
    latencies = [each for connection in connections for each in connection.latencies]
    return Outcome(
        per_second=len(latencies) / seconds,
        p50=median(latencies),
        p99=quantiles(latencies, n=100)[98],
        seconds=seconds,
        accepted=sum(connection.accepted for connection in (*warm, *connections)),
    )


def main() -> None:
    """Carry out the plan of the command line."""
    pin(LOAD_CORE)
    plan = Plan(**json.loads(sys.argv[1]))
    print(json.dumps(asdict(uvloop.run(_measure(plan)))))


if __name__ == "__main__":
    main()
