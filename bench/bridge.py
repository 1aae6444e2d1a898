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
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
import uvloop
from typing_extensions import override

from app.agents.catalog import known_agents
from app.config import Configuration, load
from app.core.adapters import Adapter
from app.errors import DeliveryRefused
from app.main import Bridge, open_resources, serve
from app.model.inbound import Delivery, Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import PostContent, PostSend, PostSent
from app.model.types import Speaker
from app.server.listener import Listener, bound
from app.services import registered_services
from bench.machine import (
    LAST_WORDS,
    LISTENING,
    LOOK_SECONDS,
    ROOT,
    SERVER_CORE,
    Server,
    exchange,
    free_port,
    pin,
)
from bench.proof import Unproven
from bench.webhooks import DELIVERY_HEADER, EVENT_HEADER, PATH, SIGNATURE_HEADER, is_signed, request

AGENT = "demo"
DEMO = ROOT / "app" / "demo_agent.py"
STOPWATCH = ROOT / "bench" / "agents" / "stopwatch.py"
ENDED = ("done", "failed", "stopped")
READY_SECONDS = 60.0
"""How long a bridge may take from listening to ready on a busy machine."""


class BenchAdapter(Adapter):
    """One agent's presence on a platform that signs like GitHub and takes every post at once."""

    def __init__(self, agent: str) -> None:
        super().__init__("web", agent, pace=1.0, paths=(PATH, f"{PATH}/{agent}"))
        self.shown: PostContent | None = None
        """The last post of a turn that has ended."""
        self.ended = asyncio.Event()

    @override
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

    @override
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

    @override
    async def refusal(self, _speaker: Speaker, _place: PlaceKey) -> str | None:
        """Let everybody."""
        return None

    @override
    async def whisper(self, _key: SessionKey, _speaker: Speaker, _words: str) -> None:
        """Say nothing to anybody alone."""

    @override
    async def send(self, post: PostSend) -> PostSent:
        """Take every post."""
        if post.content.kind == "turn" and post.content.state in ENDED:
            self.shown = post.content
            self.ended.set()
        return PostSent(post.remote_id or post.marker, len(post.content.text))

    @override
    async def find(self, _target: SessionKey, _marker: str) -> PostSent | None:
        """Know of no lost post."""
        return None


def said(place: str, text: str, port: int, agent: str = "") -> bytes:
    """Make the request of a person saying something to an agent, else to the last one."""
    event = {"place": place, "text": text}
    return request(event, f"{place}-{time.monotonic_ns()}", port, agent=agent)


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

    def stamps(self, name: str) -> Iterator[Path]:
        """Find the files of this name in the homes of its agents."""
        return self.data_dir.glob(f"session-homes/*/{name}")

    def wait_ready(self) -> float:
        """Wait until all its parts work; returns how long that took from now."""
        began = time.perf_counter()
        look = f"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()
        while exchange(self.port, look) != 200:
            if time.perf_counter() - began > READY_SECONDS:
                raise Unproven(
                    f"the bridge does not get ready: {self.log.read_text()[-LAST_WORDS:]}"
                )
            time.sleep(LOOK_SECONDS)
        return time.perf_counter() - began


def surroundings(folder: Path, port: int, agent: list[str], sandbox: str) -> dict[str, str]:
    """Make the environment of a bridge with one agent, a Python program."""
    entry = {"command": [sys.executable, *agent], "sandbox": sandbox}
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "person"),
        "BRIDGE_BASE_URL": f"http://127.0.0.1:{port}",
        "AGENT_BRIDGE_ENV_FILE": os.devnull,
        "DATA_DIR": str(folder / "data"),
        "PORT": str(port),
        "AGENTS_JSON": json.dumps({AGENT: entry}),
        "MAX_PROCESSES": "1000",
        "LOG_LEVEL": "warning",
    }


def configured(environment: Mapping[str, str], home: Path) -> Configuration:
    """Read a configuration."""
    return load(environment, known=known_agents(), services=registered_services(), home=home)


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
        port = bound(configuration.settings.host, configuration.settings.port)
        if plan.works:
            await serve(bridge, [port], listening=_say_so)
        else:
            await _accept_only(bridge, port)

    with open_resources(configuration) as base:
        uvloop.run(run())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
