"""What the tests of the agent's side share: listeners with a memory, and agents made to measure."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import orjson

from app.acp.launch import AgentLaunch
from app.acp.launcher import AcpLauncher
from app.acp.peer import AgentTimeouts
from app.children.environment import agent_environment
from app.model.keys import PlaceKey, SessionKey
from app.model.types import ProcessRecord, Session, SessionState
from app.model.updates import AskRequest, BridgeUpdate, PromptEnd, TextUpdate
from app.store.sessions import ProcessStore
from tests.support.bystander import Bystander

BOUND = 5.0
DEMO = Path(__file__).parents[3] / "app" / "demo_agent.py"

# A scripted agent: what it does with each method is Python text given by the test.
PRELUDE = """
import json, os, signal, subprocess, sys, time

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def answer(message, **result):
    send(id=message["id"], result=result)

def update(kind, session="s1", **fields):
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    send(method="session/update", params=params)

def say(text, session="s1", kind="agent_message_chunk"):
    update(kind, session, content={"type": "text", "text": text})

def initialize(message):
    answer(message, protocolVersion=1, agentCapabilities={"loadSession": True})

def new(message):
    answer(message, sessionId="s1")

def load(message):
    answer(message)

def prompt(message):
    answer(message, stopReason="end_turn")

def cancel(message):
    pass
"""
LOOP = """
for line in sys.stdin:
    message = json.loads(line)
    handler = globals().get(message.get("method", "reply").rpartition("/")[2])
    if handler is not None:
        handler(message)
"""


def scripted(body: str = "") -> tuple[str, ...]:
    """Return the command of an agent that behaves as this text says."""
    return (sys.executable, "-c", PRELUDE + body + LOOP)


@dataclass
class Memory(Bystander):
    """A listener that remembers what it heard."""

    answer: str | None = None
    end: PromptEnd = PromptEnd("not yet")  # noqa: RUF009 - frozen
    heard: list[BridgeUpdate] = field(default_factory=list)
    asked: list[AskRequest] = field(default_factory=list)
    something: asyncio.Event = field(default_factory=asyncio.Event)
    asking: asyncio.Event = field(default_factory=asyncio.Event)
    patience: asyncio.Event | None = None
    """What `on_ask` waits for before it answers."""

    async def on_update(self, update: BridgeUpdate) -> None:
        self.heard.append(update)
        self.something.set()

    async def on_ask(self, request: AskRequest) -> str | None:
        self.asked.append(request)
        self.asking.set()
        if self.patience is not None:
            await self.patience.wait()
        return self.answer

    @property
    def text(self) -> str:
        return "".join(update.text for update in self.heard if isinstance(update, TextUpdate))


class Counts:
    """Counters that can be looked at."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()

    def count(self, name: str, amount: int = 1, **labels: str) -> None:
        self.dropped[labels.get("reason", name)] += amount

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Keep nothing: how long things take is of no concern here."""

    def trace(self, stage: str, turn: int, began: float, ended: float, **facts: str) -> None:
        """Keep nothing."""


class Processes:
    """A process store that keeps its diary."""

    def __init__(self) -> None:
        self.diary: list[tuple[str, str]] = []
        self.records: list[ProcessRecord] = []

    async def started(self, process: ProcessRecord) -> None:
        self.records.append(process)
        self.diary.append(("started", process.marker))

    async def ended(self, marker: str) -> None:
        self.diary.append(("ended", marker))

    async def leftovers(self) -> list[ProcessRecord]:
        return list(self.records)


class StillClock:
    """A clock that stands until somebody sleeps by it."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class FakePipes:
    """The pipes of an agent that exists only in the test."""

    def __init__(self, *blocks: bytes) -> None:
        self.blocks = list(blocks)
        self.written: list[dict[str, Any]] = []
        self.discarded = False
        self.stdout = self
        self.drained = asyncio.Event()
        self.drained.set()

    async def read(self, n: int, /) -> bytes:
        if not self.blocks or self.discarded:
            return b""
        block = self.blocks.pop(0)
        if len(block) > n:
            self.blocks.insert(0, block[n:])
        return block[:n]

    def write(self, data: bytes, /) -> None:
        self.written.append(orjson.loads(data))

    async def drain(self) -> None:
        await self.drained.wait()

    def discard_output(self) -> None:
        self.discarded = True


@dataclass
class Workbench:
    """A launcher for one agent, with everything it touches within reach."""

    home: Path
    workspace: Path
    argv: tuple[str, ...]
    own: dict[str, str]
    timeouts: AgentTimeouts = AgentTimeouts()  # noqa: RUF009 - frozen
    changes: Mapping[str, Any] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    processes: Processes = field(default_factory=Processes)
    clock: StillClock = field(default_factory=StillClock)
    between: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        launch: dict[str, Any] = {
            "name": "demo",
            "argv": self.argv,
            "home": self.home,
            "environment": self._environment,
        }
        self.launcher = AcpLauncher(
            {"demo": AgentLaunch(**(launch | dict(self.changes)))},
            cast("ProcessStore", self.processes),
            self.clock,
            self.counts,
            bridge="test",
            timeouts=self.timeouts,
        )

    def _environment(self, marker: str) -> Mapping[str, str]:
        base = {"PATH": "/usr/bin:/bin"}
        return agent_environment(base, home=self.home, own=self.own, marker=marker)

    @property
    def marker(self) -> str:
        return self.processes.records[-1].marker


Bench = Callable[..., Workbench]


def session(acp_session_id: str | None = None, **changes: Any) -> Session:
    """Return a stored session of the demo agent."""
    return Session(
        id=7,
        key=SessionKey("web", "t1", "demo"),
        place=PlaceKey("web", "t1"),
        state=SessionState.IDLE,
        acp_session_id=acp_session_id,
        **changes,
    )


def update_frame(update: object, session_id: str = "s1") -> bytes:
    """Return one `session/update` as it stands on the wire."""
    params = {"sessionId": session_id, "update": update}
    return orjson.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}) + b"\n"


def chunk(text: str, session_id: str = "s1") -> bytes:
    """Return one piece of text as it stands on the wire."""
    content = {"type": "text", "text": text}
    return update_frame(
        {"sessionUpdate": "agent_message_chunk", "content": content}, session_id=session_id
    )
