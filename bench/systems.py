"""Runs the systems that are compared, and sends them the messages of a model company.

Every message must have been read by an agent exactly once, else there is no figure.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles

from app.store.database import FILE_NAME
from bench.arrivals import Message, Traffic
from bench.bridge import DEMO, STOPWATCH, BridgeServer, said
from bench.postgres import postgres_server
from bench.proof import Unproven, prove_equal

SLOTS = 8
"""Turns at once per worker: so few that two cores saturate later than the slots of one worker."""
AGENTS = 3
PLACES = 120
DRAIN_SECONDS = 120.0
"""How long the agents may take to read the last messages of a step."""
LATE_SECONDS = 2.0
"""A step in which one message in twenty waits longer than this for its agent is saturated."""


_RUNS = count()


@dataclass(frozen=True, slots=True)
class Step:
    """What came of one rate of messages."""

    per_second: float
    messages: int
    ack_p50: float
    ack_p99: float
    wait_p50: float
    """From the message, or the end of the turn before it, to the agent that has read it."""
    wait_p95: float
    drain_seconds: float
    """From the last message until all were read."""
    cpu: Mapping[str, float]
    """Seconds of processor time per message, by kind of process."""

    @property
    def saturated(self) -> bool:
        """Whether messages come faster than they are dealt with."""
        return self.wait_p95 > LATE_SECONDS


@dataclass
class System:
    """The processes that serve together."""

    name: str
    stamps: Path
    bridges: Mapping[str, BridgeServer]
    """By role and number."""
    fronts: Sequence[int]
    """The ports that take messages."""
    database_cpu: Callable[[], float] = lambda: 0.0
    steps: list[Step] = field(default_factory=list)
    stored: Callable[[], int] = lambda: 0
    """The bytes of its database."""
    sent: int = 0
    """Messages so far."""

    @property
    def stored_bytes(self) -> float:
        """What a message leaves in the database."""
        return self.stored() / self.sent

    def cpu(self) -> dict[str, float]:
        """Processor time so far, by kind of process."""
        spent = {"database": self.database_cpu()}
        for name, bridge in self.bridges.items():
            role = name.partition(" ")[0]
            spent[role] = spent.get(role, 0.0) + bridge.server.cpu_seconds()
        return spent

    def warm_up(self, traffic: Traffic) -> None:
        """Have every part of it work once."""
        self.run(traffic)
        self.steps.clear()

    @property
    def borne(self) -> Step:
        """The highest rate that did not saturate it, else the lowest one."""
        return next((each for each in reversed(self.steps) if not each.saturated), self.steps[0])

    def run(self, traffic: Traffic) -> Step:
        """Send the messages of a traffic at their times, and wait until all were read.

        Raises:
            Unproven: a message was refused, not read, or read twice.
        """
        run_name = f"r{next(_RUNS)}x"
        before = self.cpu()
        messages = list(traffic.messages())
        sent, acks = asyncio.run(self._send(run_name, messages))
        self.sent += len(messages)
        ended = time.monotonic()
        read = self._wait(run_name, len(messages))
        drained = time.monotonic() - ended
        after = self.cpu()
        waits = list(_waits(messages, run_name, sent, read))
        step = Step(
            traffic.per_second,
            len(messages),
            median(acks),
            quantiles(acks, n=100)[98],
            median(waits),
            quantiles(waits, n=20)[18],
            drained,
            {kind: (after[kind] - before[kind]) / len(messages) for kind in after},
        )
        self.steps.append(step)
        return step

    async def _send(
        self, run_name: str, messages: Sequence[Message]
    ) -> tuple[dict[str, float], list[float]]:
        sent: dict[str, float] = {}
        acks: list[float] = []
        began = time.monotonic()

        async def send(message: Message) -> None:
            await asyncio.sleep(max(began + message.at - time.monotonic(), 0))
            name = f"{run_name}{message.number}"
            port = self.fronts[message.number % len(self.fronts)]
            words = f"say load-{name}-\nslow {message.work_seconds}"
            request = said(f"p{message.place}", words, port, agent=f"demo{message.agent}")
            sent[name] = time.monotonic()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            line = await reader.readline()
            acks.append(time.monotonic() - sent[name])
            writer.close()
            if b" 200 " not in line:
                raise Unproven(f"a message was answered with {line!r}")

        async with asyncio.TaskGroup() as group:
            for message in messages:
                group.create_task(send(message))
        return sent, acks

    def _wait(self, run_name: str, count: int) -> dict[str, float]:
        """Wait until so many messages of a run were read; returns when each was."""
        deadline = time.monotonic() + DRAIN_SECONDS
        while True:
            read = self._read(run_name)
            if len(read) >= count or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        prove_equal(len(read), count, "messages that an agent has read")
        return {name: moments[0] for name, moments in read.items()}

    def _read(self, run_name: str) -> dict[str, list[float]]:
        read: dict[str, list[float]] = {}
        text = self.stamps.read_text() if self.stamps.exists() else ""
        for line in text.splitlines():
            name, moment = line.split()
            if name.startswith(run_name):
                read.setdefault(name, []).append(float(moment))
        twice = [name for name, moments in read.items() if len(moments) > 1]
        if twice:
            raise Unproven(f"read twice: {twice[:5]}")
        return read


def _waits(
    messages: Sequence[Message],
    run_name: str,
    sent: Mapping[str, float],
    read: Mapping[str, float],
) -> Iterator[float]:
    """Tell how long each turn waited for the bridge, without the turns before it in its place."""
    turns: dict[tuple[int, float], list[Message]] = {}
    for message in messages:
        turns.setdefault((message.place, read[f"{run_name}{message.number}"]), []).append(message)
    free: dict[int, float] = {}
    for place, moment in sorted(turns):
        said_at = min(sent[f"{run_name}{each.number}"] for each in turns[place, moment])
        yield max(moment - max(said_at, free.get(place, 0.0)), 0.0)
        free[place] = moment + sum(each.work_seconds for each in turns[place, moment])


def _settings(stamps: Path) -> dict[str, str]:
    entry = {"command": [sys.executable, str(STOPWATCH), str(DEMO), str(stamps)], "sandbox": "none"}
    return {
        "AGENTS_JSON": json.dumps({f"demo{number}": entry for number in range(AGENTS)}),
        "MAX_TURNS": str(SLOTS),
    }


@contextmanager
def sqlite(folder: Path) -> Iterator[System]:
    """Run one bridge on SQLite."""
    stamps = folder / "stamps"
    bridge = BridgeServer(folder / "bridge", core=-1, settings=_settings(stamps))
    with bridge.server:
        bridge.wait_ready()
        yield System(
            "SQLite, one bridge",
            stamps,
            {"bridge": bridge},
            [bridge.port],
            stored=lambda: (bridge.data_dir / FILE_NAME).stat().st_size,
        )


@contextmanager
def fleet(folder: Path, workers: int) -> Iterator[System]:
    """Run two fronts and some workers on one PostgreSQL."""
    stamps = folder / "stamps"
    roles = ["front 1", "front 2", *(f"worker {number + 1}" for number in range(workers))]
    with postgres_server() as server, ExitStack() as stack:
        shared = {
            **_settings(stamps),
            "DATABASE_URL": server.create("bridge"),
            "SHARED_DIR": str(folder / "shared"),
        }
        bridges: dict[str, BridgeServer] = {}
        for name in roles:
            settings = {**shared, "ROLE": name.partition(" ")[0]}
            bridges[name] = BridgeServer(
                folder / name.replace(" ", "-"), core=-1, settings=settings
            )
            stack.enter_context(bridges[name].server)
            bridges[name].wait_ready()
        fronts = [bridge.port for name, bridge in bridges.items() if name.startswith("front")]
        title = f"PostgreSQL, two fronts, {workers} worker{'s' if workers > 1 else ''}"
        yield System(title, stamps, bridges, fronts, server.cpu_seconds)
