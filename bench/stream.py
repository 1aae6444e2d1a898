"""The stream of one agent: pipe, frames, updates, router, store and outbox.

Run as `python -m bench.stream WAY COUNT FOLDER` it measures one way once and prints
seconds, by the clock on the wall and on the core.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson
import uvloop
from acp import Client, spawn_agent_process, text_block

from app.core.inbound import Delivery
from app.core.stores.sessions import TurnStore
from app.main import Bridge, founded
from app.store.stores import Stores
from bench.bridge import AGENT, BenchAdapter, configured, surroundings
from bench.figures import Goal, Row, Scale, ratios
from bench.machine import LOAD_CORE, ROOT, SERVER_CORE, output_of, pin

EMITTER = ROOT / "bench" / "agents" / "emitter.py"
TURN_SECONDS = 120.0
"""How long one stream may take on a busy machine."""


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure the whole path against a blocking loop and against the SDK."""
    streams: dict[str, list[Stream]] = {"bridge": [], "blocking": [], "sdk": []}
    for number in range(scale.rounds):
        for way, taken in streams.items():
            place = folder / f"{way}-{number}"
            place.mkdir(parents=True)
            count = scale.updates // (10 if way == "sdk" else 1)
            said = output_of("bench.stream", way, str(count), str(place))
            wall, core = (float(seconds) / count for seconds in said.split())
            taken.append(Stream(wall, core))
    yield _row("a blocking readline + orjson loop", streams["bridge"], streams["blocking"], 0.25)
    yield _row("the SDK with a client that counts", streams["bridge"], streams["sdk"], 8.0)


def _row(against: str, ours: list[Stream], theirs: list[Stream], goal: float) -> Row:
    best, other = min(each.wall for each in ours), min(each.wall for each in theirs)
    typical = ratios([each.wall for each in theirs], [each.wall for each in ours])
    core, their_core = min(each.core for each in ours), min(each.core for each in theirs)
    return Row(
        "120-byte text updates, whole stream path",
        against,
        other / best,
        " x",
        Goal("at least", goal),
        f"{1 / best:,.0f}/s against {1 / other:,.0f}/s, median ratio {typical:.2f}, "
        f"{core * 1e6:.1f} against {their_core * 1e6:.1f} µs of CPU each",
    )


@dataclass(frozen=True, slots=True)
class Stream:
    """What one update cost, in seconds."""

    wall: float
    core: float

    @classmethod
    def since(cls, began: Stream) -> Stream:
        """Tell what has passed."""
        now = cls.now()
        return cls(now.wall - began.wall, now.core - began.core)

    @classmethod
    def now(cls) -> Stream:
        """Read both clocks."""
        return cls(time.perf_counter(), time.process_time())


def emitter(count: int) -> list[str]:
    """Name the program that emits and its arguments."""
    return [str(EMITTER), str(count), str(LOAD_CORE)]


class Watched:
    """The turn port with a stopwatch: when the prompt was committed, and when the end was."""

    def __init__(self, turns: TurnStore) -> None:
        self._turns = turns
        self.began = Stream.now()
        self.took: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    async def prompted(self, *arguments: Any) -> Any:
        """Start the watch."""
        done = await self._turns.prompted(*arguments)
        self.began = Stream.now()
        return done

    async def finish(self, *arguments: Any) -> Any:
        """Stop the watch."""
        done = await self._turns.finish(*arguments)
        self.took.set_result(Stream.since(self.began))
        return done


async def through_bridge(count: int, folder: Path) -> Stream:
    """Let a whole bridge run one turn of an agent that emits."""
    environment = surroundings(folder, 1, emitter(count), "none")
    watch: list[Watched] = []

    def wrap(stores: Stores) -> Stores:
        watch.append(Watched(stores.turns))
        return replace(stores, turns=cast("TurnStore", watch[0]))

    with founded(configured(environment, folder), wrap=wrap) as base:
        adapter = BenchAdapter(AGENT)
        bridge = Bridge(base, [adapter])
        await bridge.start()
        body = json.dumps({"place": "stream", "text": "go"}).encode()
        await bridge.intake.settle(Delivery(adapter.service_name, "1", None, {}, body, 0.0))
        try:
            async with asyncio.timeout(TURN_SECONDS):
                return await watch[0].took
        finally:
            await bridge.stop()


async def through_sdk(count: int, folder: Path) -> Stream:
    """Let the SDK's own client count."""

    class Counting(Client):
        heard = 0

        async def session_update(self, *_: Any, **__: Any) -> None:
            Counting.heard += 1
            if Counting.heard == count:
                all_heard.set()

    all_heard = asyncio.Event()
    async with spawn_agent_process(Counting(), sys.executable, *emitter(count)) as (agent, _):  # type: ignore[abstract]  # the agent asks for nothing
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(folder), mcp_servers=[])
        began = Stream.now()
        await agent.prompt(session_id=session.session_id, prompt=[text_block("go")])
        await all_heard.wait()
        return Stream.since(began)


def through_blocking_loop(count: int, folder: Path) -> Stream:
    """Read line by line and parse, nothing else."""
    with subprocess.Popen(
        [sys.executable, *emitter(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for method in ("initialize", "session/new"):
            child.stdin.write(_call(method))
            child.stdin.flush()
            child.stdout.readline()
        began = Stream.now()
        child.stdin.write(_call("session/prompt"))
        child.stdin.flush()
        heard = 0
        for line in child.stdout:
            if "result" in orjson.loads(line):
                break
            heard += 1
        took = Stream.since(began)
        child.stdin.close()
    assert heard == count
    return took


def _call(method: str) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}) + b"\n"


def main(way: str, count: int, folder: Path) -> Stream:
    """Measure one way once."""
    pin(SERVER_CORE)
    match way:
        case "bridge":
            return uvloop.run(through_bridge(count, folder))
        case "sdk":
            return uvloop.run(through_sdk(count, folder))
        case _:
            return through_blocking_loop(count, folder)


if __name__ == "__main__":
    measured = main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    print(measured.wall, measured.core)
