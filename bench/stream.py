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
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import orjson
import uvloop
from acp import Client, spawn_agent_process, text_block

from app.core.update_router import ANSWER_CHARACTERS
from app.main import Bridge, open_resources
from app.model.inbound import Delivery
from app.model.types import TurnState
from app.store.stores import Stores
from app.store.turns import TurnStore
from bench.agents.emitter import TEXT
from bench.bridge import AGENT, BenchAdapter, configured, surroundings
from bench.figures import Goal, Row, Scale, ratios
from bench.machine import LOAD_CORE, ROOT, SERVER_CORE, output_of, pin
from bench.proof import PROOF_SECONDS, prove, prove_equal

EMITTER = ROOT / "bench" / "agents" / "emitter.py"
TURN_SECONDS = 120.0
"""How long one stream may take on a busy machine."""
LATE_SECONDS = 5.0
"""How long updates may come after the answer that ends their turn."""


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


def emitter(count: int, program: Path = EMITTER) -> list[str]:
    """Name the program that emits and its arguments."""
    return [str(program), str(count), str(LOAD_CORE)]


class Watched:
    """The turn port with a stopwatch: when the prompt was committed, and when the end was."""

    def __init__(self, turns: TurnStore) -> None:
        self._turns = turns
        self.began = Stream.now()
        self.took: asyncio.Future[tuple[int, Stream]] = asyncio.get_running_loop().create_future()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    async def prompted(self, *arguments: Any, **named: Any) -> Any:
        """Start the watch."""
        done = await self._turns.prompted(*arguments, **named)
        self.began = Stream.now()
        return done

    async def finish(self, turn_id: int, *arguments: Any, **named: Any) -> Any:
        """Stop the watch."""
        done = await self._turns.finish(turn_id, *arguments, **named)
        self.took.set_result((turn_id, Stream.since(self.began)))
        return done


async def through_bridge(count: int, folder: Path, program: Path = EMITTER) -> Stream:
    """Let a whole bridge run one turn of an agent that emits.

    Raises:
        Unproven: the turn is not done, or not every character of it is kept and posted.
    """
    environment = surroundings(folder, 1, emitter(count, program), "none")
    watch: list[Watched] = []

    def wrap(stores: Stores) -> Stores:
        watch.append(Watched(stores.turns))
        return replace(stores, turns=cast("TurnStore", watch[0]))

    with open_resources(configured(environment, folder), wrap=wrap) as base:
        adapter = BenchAdapter(AGENT)
        bridge = Bridge(base, [adapter])
        # A bridge imports this right after its start, in a thread: that is no part of a stream.
        import_module("app.mcp_server.protocol")
        await bridge.start()
        body = json.dumps({"place": "stream", "text": "go"}).encode()
        await bridge.intake.settle(Delivery(adapter.service_name, "1", None, {}, body, 0.0))
        try:
            async with asyncio.timeout(TURN_SECONDS):
                turn, took = await watch[0].took
            await _prove_stream(base.stores, turn, count, adapter)
        finally:
            await bridge.stop()
    return took


async def _prove_stream(stores: Stores, turn: int, count: int, adapter: BenchAdapter) -> None:
    found = stores.turns.turn(turn)
    assert found is not None
    prove(found.state is TurnState.DONE, f"the turn is {found.state}: {found.error}")
    rows = await stores.transcript.read(found.session, after=0, limit=count)
    kept = "".join(row.text for row in rows if row.kind == "text")
    prove_characters(len(kept), count)
    prove(kept == TEXT * count, "the transcript says something else than the agent")
    async with asyncio.timeout(PROOF_SECONDS):
        await adapter.ended.wait()
    assert adapter.shown is not None
    posted = adapter.shown.text.startswith(kept[:ANSWER_CHARACTERS])
    prove(posted, "the post says something else than the agent")
    prove_equal(adapter.shown.note, "", "what the bridge had to say about the turn")


async def through_sdk(count: int, folder: Path, program: Path = EMITTER) -> Stream:
    """Let the SDK's own client count.

    Raises:
        Unproven: not every character came.
    """

    class Counting(Client):
        heard = characters = 0

        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002
            self.heard += 1
            self.characters += len(update.content.text)
            if self.heard == count:
                all_heard.set()

    all_heard = asyncio.Event()
    client = Counting()  # type: ignore[abstract]  # the agent asks for nothing
    async with spawn_agent_process(client, sys.executable, *emitter(count, program)) as (agent, _):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(folder), mcp_servers=[])
        began = Stream.now()
        answer = await agent.prompt(session_id=session.session_id, prompt=[text_block("go")])
        with suppress(TimeoutError):
            await asyncio.wait_for(all_heard.wait(), LATE_SECONDS)
        took = Stream.since(began)
    prove_equal(answer.stop_reason, "end_turn", "end of the turn")
    prove_characters(client.characters, count)
    return took


def through_blocking_loop(count: int, folder: Path, program: Path = EMITTER) -> Stream:
    """Read line by line and parse, nothing else.

    Raises:
        Unproven: not every character came.
    """
    with subprocess.Popen(
        [sys.executable, *emitter(count, program)],
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
        characters, end = 0, None
        for line in child.stdout:
            frame = orjson.loads(line)
            if "result" in frame:
                end = frame["result"].get("stopReason")
                break
            characters += len(frame["params"]["update"]["content"]["text"])
        took = Stream.since(began)
        child.stdin.close()
    prove_equal(end, "end_turn", "end of the turn")
    prove_characters(characters, count)
    return took


def prove_characters(found: int, count: int) -> None:
    """Make sure that as many characters came as so many updates have.

    Raises:
        Unproven: there are fewer or more.
    """
    prove_equal(found, count * len(TEXT), "characters that came")


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
