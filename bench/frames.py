"""Makes the load of Socket Mode: a Slack that sends frames and waits for their acknowledgements.

A program of its own, so that it can have a core of its own: `python -m bench.frames` with a plan as
JSON; what is measured connects to it, and it prints what came of it as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Protocol
from uuid import uuid4

import orjson
import uvloop
from aiohttp import WSMessage, WSMsgType, web

from bench.machine import LOAD_CORE, output_of, pin
from bench.proof import Unproven, prove

ANSWER_SECONDS = 30.0
"""How long the next acknowledgement may take on a busy machine."""
WINDOW = 64
"""Frames under way at once: a busy workspace after a reconnect."""
IDENTITY = {"user_id": "U0BOT", "bot_id": "B0", "team_id": "T0", "url": "https://home.slack.com/"}
PERSON = {"id": "U1", "team_id": "T0", "profile": {"display_name": "Ann"}}


@dataclass(frozen=True, slots=True)
class Plan:
    """How many frames to send, and where to be found."""

    port: int
    count: int
    warm_up: int
    """Frames before the clock starts: names that are looked up, caches, first pages of files."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    per_second: float
    seconds: float


def run(plan: Plan) -> Outcome:
    """Make a load for what connects, and return what came of it."""
    return Outcome(**json.loads(output_of("bench.frames", json.dumps(asdict(plan)))))


def frames(count: int) -> Iterator[tuple[str, str]]:
    """Write frames as Slack does, each after its id: a person replies in a thread."""
    words = "This is what a person says in a thread, long enough to be a usual message. " * 6
    element = {"type": "text", "text": words}
    section = {"type": "rich_text_section", "elements": [element]}
    for number in range(count):
        event = {
            "type": "message",
            "channel": "C1",
            "channel_type": "channel",
            "user": "U1",
            "ts": f"1800000001.{number:06d}",
            "thread_ts": "1800000000.000000",
            "text": words,
            "blocks": [{"type": "rich_text", "elements": [section]}],
            "team": "T0",
        }
        payload = {
            "type": "event_callback",
            "team_id": "T0",
            "api_app_id": "A0",
            "event_id": f"Ev{uuid4().hex}",
            "event_time": 1_800_000_000,
            "event": event,
            "authorizations": [{"team_id": "T0", "user_id": "U0BOT", "is_bot": True}],
        }
        envelope = uuid4().hex
        frame = {"envelope_id": envelope, "type": "events_api", "payload": payload}
        yield envelope, orjson.dumps(frame).decode()


class Slack:
    """The other side of the socket."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer what an app asks before it listens."""
        address = f"ws://127.0.0.1:{self._plan.port}/link"
        answer: dict[str, Any] = {"ok": True, "url": address, "user": PERSON, **IDENTITY}
        if request.match_info["method"] == "apps.connections.open":
            answer["url"] = address
        return web.json_response(answer)

    async def link(self, request: web.Request) -> web.WebSocketResponse:
        """Send everything, never more at once than the window holds."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str('{"type":"hello"}')
        try:
            outcome = await self._measure(socket)
        except (Unproven, TimeoutError) as failure:
            if not self.outcome.done():
                self.outcome.set_exception(failure)
        else:
            if not self.outcome.done():
                self.outcome.set_result(outcome)
        return socket

    async def _measure(self, socket: web.WebSocketResponse) -> Outcome:
        await exchange(socket, dict(frames(self._plan.warm_up)))
        ready = dict(frames(self._plan.count))
        began = time.perf_counter()
        await exchange(socket, ready)
        seconds = time.perf_counter() - began
        return Outcome(self._plan.count / seconds, seconds)


class Line(Protocol):
    """The side of a web socket that frames go out on."""

    async def send_str(self, data: str) -> None:
        """Send a frame."""

    async def receive(self, timeout: float | None = None) -> WSMessage:  # noqa: ASYNC109 - aiohttp's
        """Take what comes next."""


async def exchange(line: Line, ready: Mapping[str, str]) -> None:
    """Send frames and take their acknowledgements, exactly one for each.

    Raises:
        Unproven: one was acknowledged twice, never sent, or not acknowledged at all.
    """
    left = iter(ready.values())
    for frame in islice(left, WINDOW):
        await line.send_str(frame)
    open_frames = set(ready)
    while open_frames:
        try:
            message = await line.receive(ANSWER_SECONDS)
        except TimeoutError:
            raise Unproven(f"{len(open_frames)} frames were not acknowledged") from None
        prove(message.type is WSMsgType.TEXT, "the receiver closed the connection")
        envelope = orjson.loads(message.data)["envelope_id"]
        prove(envelope in open_frames, f"{envelope} was acknowledged, but is not waiting")
        open_frames.remove(envelope)
        if (frame := next(left, "")) != "":
            await line.send_str(frame)


async def _serve(plan: Plan) -> Outcome:
    slack = Slack(plan)
    application = web.Application()
    application.router.add_route("*", "/api/{method}", slack.answer)
    application.router.add_get("/link", slack.link)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", plan.port).start()
    outcome = await slack.outcome
    await runner.cleanup()
    return outcome


if __name__ == "__main__":
    pin(LOAD_CORE)
    print(json.dumps(asdict(uvloop.run(_serve(Plan(**json.loads(sys.argv[1])))))))
