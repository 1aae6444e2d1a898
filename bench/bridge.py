"""A bridge in a process of its own, with an adapter of the bench in place of the platforms.

Run as `python -m bench.bridge PLAN` with a plan as JSON. Everything but the adapter is the product.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
import uvloop

from app.agents.catalog import known_agents
from app.config import Configuration, load
from app.core.inbound import Delivery, Heard
from app.core.keys import PlaceKey, SessionKey, adapter_name
from app.core.posts import PostSend, PostSent
from app.core.types import Earlier, Speaker
from app.errors import DeliveryRefused
from app.main import Bridge, founded, serve
from app.server.listener import Listener, bound
from bench.machine import (
    LISTENING,
    LOOK_SECONDS,
    ROOT,
    SERVER_CORE,
    Server,
    exchange,
    free_port,
    pin,
)
from bench.webhooks import (
    DELIVERY_HEADER,
    EVENT_HEADER,
    PATH,
    SIGNATURE_HEADER,
    is_signed,
    request,
)

AGENT = "demo"
DEMO = ROOT / "app" / "demo_agent.py"
STOPWATCH = ROOT / "bench" / "agents" / "stopwatch.py"
READY_SECONDS = 60.0
"""How long a bridge may take from listening to ready on a busy machine."""


class BenchAdapter:
    """One agent's presence on a platform that signs like GitHub and takes every post at once."""

    pace = 1.0
    paths: tuple[str, ...] = (PATH,)

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.service_name = adapter_name("web", agent)

    def verify(self, headers: dict[bytes, bytes], body: bytes, now: float) -> Delivery:
        """Check the HMAC over the raw body."""
        if not is_signed(headers, body):
            raise DeliveryRefused("the signature is wrong")
        return Delivery(
            adapter=self.service_name,
            delivery_id=headers[DELIVERY_HEADER].decode(),
            signature=headers[SIGNATURE_HEADER].decode(),
            headers={"x-github-event": headers[EVENT_HEADER].decode()},
            body=body,
            received_at=now,
        )

    def parse(self, delivery: Delivery) -> Heard | None:
        """Understand what says a place; everything else is of no concern."""
        event = orjson.loads(delivery.body)
        if "place" not in event:
            return None
        return Heard(
            place=PlaceKey("web", event["place"]),
            external=event["place"],
            message_id=delivery.delivery_id,
            speaker=Speaker("ann", "Ann"),
            text=event["text"],
            mentions=(self.agent,),
        )

    def is_shared(self, _key: SessionKey) -> bool:
        """Tell that other agents can answer as well."""
        return True

    async def refusal(self, _speaker: Speaker, _place: PlaceKey) -> str | None:
        """Let everybody."""
        return None

    async def earlier(self, _key: SessionKey, _before: str) -> Sequence[Earlier]:
        """Know nothing of what was said before."""
        return ()

    async def whisper(self, _key: SessionKey, _speaker: Speaker, _words: str) -> None:
        """Say nothing to anybody alone."""

    async def send(self, post: PostSend) -> PostSent:
        """Take every post."""
        return PostSent(post.remote_id or post.marker, len(post.content.text))

    async def find(self, _target: SessionKey, _marker: str) -> PostSent | None:
        """Know of no lost post."""
        return None

    async def close(self) -> None:
        """Hold nothing open."""


def said(place: str, text: str, port: int) -> bytes:
    """Make the request of somebody saying something to the agent."""
    return request({"place": place, "text": text}, f"{place}-{time.monotonic_ns()}", port)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a bridge is started."""

    environment: dict[str, str]
    home: str
    core: int
    works: bool
    """Whether it does more than accept: intake, turns, outbox."""


@dataclass
class BridgeServer:
    """A bridge on a DATA_DIR, started and ended as often as a measurement likes."""

    folder: Path
    works: bool = True
    core: int = SERVER_CORE
    sandbox: str = "none"
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "person").mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.log = self.folder / "bridge.log"
        environment = surroundings(
            self.folder, self.port, [str(STOPWATCH), str(DEMO)], self.sandbox
        )
        plan = Plan(environment | self.settings, str(self.folder / "person"), self.core, self.works)
        self.server = Server("bench.bridge", json.dumps(asdict(plan)), port=self.port, log=self.log)

    @property
    def data_dir(self) -> Path:
        """Where it keeps everything."""
        return self.folder / "data"

    @property
    def agent_home(self) -> Path:
        """Where its agent lives."""
        return self.data_dir / "homes" / AGENT

    def wait_ready(self) -> float:
        """Wait until all its parts work; returns how long that took from now."""
        began = time.perf_counter()
        look = f"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()
        while exchange(self.port, look) != 200:
            if time.perf_counter() - began > READY_SECONDS:
                raise TimeoutError(f"the bridge does not get ready, see {self.log}")
            time.sleep(LOOK_SECONDS)
        return time.perf_counter() - began


def surroundings(folder: Path, port: int, agent: list[str], sandbox: str) -> dict[str, str]:
    """Make the environment of a bridge with one agent, a Python program."""
    entry = {"command": [sys.executable, *agent], "sandbox": sandbox}
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "person"),
        "DATA_DIR": str(folder / "data"),
        "PORT": str(port),
        "AGENTS_JSON": json.dumps({AGENT: entry}),
        "MAX_PROCESSES": "1000",
        "LOG_LEVEL": "warning",
    }


def configured(environment: Mapping[str, str], home: Path) -> Configuration:
    """Read a configuration."""
    return load(environment, known=known_agents(), home=home)


async def _accept_only(bridge: Bridge, port: socket.socket) -> None:
    listener = Listener(bridge.application(), _say_so)
    asyncio.get_running_loop().add_signal_handler(15, listener.leave)
    await listener.serve(sockets=[port])


def _say_so() -> None:
    print(LISTENING, flush=True)


def main(arguments: Mapping[str, Any]) -> None:
    """Run a bridge by a plan."""
    plan = Plan(**arguments)
    pin(plan.core)
    configuration = configured(plan.environment, Path(plan.home))

    async def run() -> None:
        bridge = Bridge(base, [BenchAdapter(name) for name in configuration.agents])
        port = bound(configuration.host, configuration.port)
        if plan.works:
            await serve(bridge, port, listening=_say_so)
        else:
            await _accept_only(bridge, port)

    with founded(configuration) as base:
        uvloop.run(run())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
