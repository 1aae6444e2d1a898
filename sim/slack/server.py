"""Serves a simulated Slack on loopback: Web API, Socket Mode, and faults on demand.

It runs in its own thread, outlives any bridge, and sends an envelope to one of an app's
connections; it resends what is not acknowledged in time, but never a click.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from aiohttp import WSMsgType, web

from sim.slack.api import POST_ONLY, READ_ONLY, TIERS, Methods
from sim.slack.blocks import SlackSays
from sim.slack.model import App, Call
from sim.slack.people import People
from sim.slack.reading import DISTRIBUTED_CALLS, MESSAGES

RESEND_SECONDS = 3.0
"""How long Slack waits for an acknowledgement."""
RETRIES = 3
CONNECTIONS = 10
TIER_SECONDS = 60.0
LOGIN_PAGE = "<!DOCTYPE html><html><body>Sign in to Slack</body></html>"


@dataclass
class Envelope:
    """One event for an app, until it is acknowledged."""

    app: str
    kind: str
    payload: dict[str, Any]
    attempt: int = 0
    timer: asyncio.TimerHandle | None = None


@dataclass(eq=False)
class Connection:
    """One WebSocket of an app."""

    socket: web.WebSocketResponse
    transport: asyncio.Transport | None
    silent: bool = False
    """Whether the connection is dead although it was not closed."""
    frames: asyncio.Queue[str] = field(default_factory=asyncio.Queue)


@dataclass
class Fault:
    """What a method answers instead of working."""

    error: str = ""
    status: int = 200
    retry_after: int = 1
    times: int | None = None
    until: float | None = None


@dataclass
class Stall:
    """How many calls of a method wait until they may go on."""

    times: int
    waiting: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)


class SimulatedSlack(People):
    """A workspace that can be reached over loopback."""

    def __init__(
        self,
        now: Callable[[], float] = time.time,
        *,
        resend_seconds: float = RESEND_SECONDS,
        retries: int = RETRIES,
        speed: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(now, speed)
        self.methods = Methods(self)
        self.emit = self._emit
        self.unacknowledged: dict[str, Envelope] = {}
        self.acknowledged: list[str] = []
        self.lost: list[Envelope] = []
        """Envelopes that Slack gave up on: resent too often, or a click."""
        self.unheard: list[Envelope] = []
        """Envelopes without a connection: Slack would lose clicks then, and delay events."""
        self.loss = 0.0
        """Which part of the events never reaches an app, although its connection is fine."""
        self.loses_unheard = False
        """Whether events without a connection are lost, not delayed."""
        self.dropped: list[Envelope] = []
        """Events that were lost like this."""
        self._chance = random.Random(seed)
        self.refreshed = 0
        self.connections: dict[str, list[Connection]] = defaultdict(list)
        self.faults: dict[str, Fault] = {}
        self.stalls: dict[str, Stall] = {}
        """Methods that do not answer for now."""
        self.downloads: list[str] = []
        """The tokens with which files were requested."""
        self.lose_answers: dict[str, int] = {}
        """How many calls of a method are carried out without an answer."""
        self._resend_seconds = resend_seconds
        self._retries = retries
        self._recent: dict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._waiting: list[Envelope] = []
        self._turn = itertools.count()
        self._ids = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="simulated slack")
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        self.files_url = f"http://127.0.0.1:{self.port}/files"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        """The base address of the Web API."""
        return f"http://127.0.0.1:{self.port}/api/"

    def fail(self, *methods: str, **fault: Any) -> None:
        """Make methods fail with an `error` or a `status`, for some `seconds` or `times`."""
        seconds = fault.pop("seconds", None)
        until = None if seconds is None else self.now() + seconds
        with self.changed:
            for method in methods:
                self.faults[method] = Fault(**fault, until=until)

    def stall(self, method: str, times: int = 1) -> None:
        """Make the next calls of a method wait until `go_on`."""
        with self.changed:
            self.stalls[method] = Stall(times)

    def go_on(self, method: str) -> None:
        """Release the waiting calls of a method."""
        self._loop.call_soon_threadsafe(self.stalls[method].over.set)

    def mend(self) -> None:
        """Clear all faults."""
        with self.changed:
            self.faults.clear()

    def connected(self, app: App) -> int:
        """Count the live connections of an app."""
        return sum(not connection.silent for connection in self.connections[app.name])

    def cut(self, app: App) -> None:
        """Drop every connection of an app without a close frame."""
        self._do(self._cut(app))

    def silence(self, app: App) -> None:
        """Make every connection of an app go dead without closing it."""
        with self.changed:
            for connection in self.connections[app.name]:
                connection.silent = True

    def refresh(self, app: App, reason: str = "refresh_requested") -> None:
        """Tell an app that its connections end soon."""
        self._do(self._refresh(app, reason))

    def _do(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._ready.set()
        self._loop.run_forever()

    async def _serve(self) -> None:
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_route("*", "/api/{method}", self._call)
        application.router.add_get("/link", self._connect)
        application.router.add_get("/files/{file}/{name}", self._download)
        application.router.add_get("/signin", self._sign_in)
        application.router.add_post("/respond", self._respond)
        application.router.add_post("/files/upload/{number}", self._upload)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _leave(self) -> None:
        for envelope in self.unacknowledged.values():
            if envelope.timer is not None:
                envelope.timer.cancel()
        for app in self.apps.values():
            await self._cut(app)
        await self._runner.cleanup()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        arguments = await _arguments(request, method)
        await self._wait_if_told(method)
        headers: dict[str, str] = {}
        status = 200
        app: App | None = None
        try:
            app = self._authenticate(request, method)
            headers["x-oauth-scopes"] = ",".join(sorted(app.scopes))
            self._fail_if_told(app, method)
            if method == "apps.connections.open":
                answer = self._open(app)
            else:
                answer = self.methods.call(app, method, arguments)
        except KeyError:
            answer = {"ok": False, "error": "invalid_arguments"}
        except SlackSays as error:
            answer = error.answer
            status = answer.pop("status", 200)
            if status == 429:
                headers["Retry-After"] = str(answer.pop("retry_after"))
        with self.changed:
            name = app.name if app is not None else ""
            self.calls.append(Call(self.now(), name, method, arguments, answer))
            lost = answer["ok"] and self.lose_answers.get(method, 0) > 0
            if lost:
                self.lose_answers[method] -= 1
            self.changed.notify_all()
        if lost:
            assert request.transport is not None
            request.transport.close()
        return web.json_response(answer, status=status, headers=headers)

    async def _wait_if_told(self, method: str) -> None:
        with self.changed:
            stall = self.stalls.get(method)
            if stall is None or stall.waiting >= stall.times:
                return
            stall.waiting += 1
            self.changed.notify_all()
        await stall.over.wait()

    def _authenticate(self, request: web.Request, method: str) -> App:
        if method in POST_ONLY and request.method != "POST":
            raise SlackSays("invalid_arguments")
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        for app in self.apps.values():
            if token in {app.token, app.app_token, app.former}:
                if app.revoked:
                    raise SlackSays("token_revoked")
                if (token == app.app_token) != (method == "apps.connections.open"):
                    raise SlackSays("not_allowed_token_type")
                return app
        raise SlackSays("invalid_auth")

    def _fail_if_told(self, app: App, method: str) -> None:
        fault = self.faults.get(method) or self.faults.get("*")
        if fault is not None and self._is_active(fault):
            facts = {"status": fault.status}
            if fault.status == 429:
                facts["retry_after"] = fault.retry_after
            error = fault.error or ("ratelimited" if fault.status == 429 else "internal_error")
            raise SlackSays(error, **facts)
        limit = DISTRIBUTED_CALLS if app.distributed and method in MESSAGES else TIERS.get(method)
        if limit is not None:
            recent = self._recent[app.name, method]
            minute = TIER_SECONDS / self.speed
            while recent and recent[0] <= self.now() - minute:
                recent.popleft()
            if len(recent) >= limit:
                wait = int((recent[0] + minute - self.now()) * self.speed) + 1
                raise SlackSays("ratelimited", status=429, retry_after=wait)
            recent.append(self.now())

    def _is_active(self, fault: Fault) -> bool:
        if fault.until is not None:
            return self.now() < fault.until
        if fault.times is None:
            return True
        fault.times -= 1
        return fault.times >= 0

    def _open(self, app: App) -> dict[str, Any]:
        if len(self.connections[app.name]) >= CONNECTIONS:
            raise SlackSays("too_many_websockets")
        return {"ok": True, "url": f"ws://127.0.0.1:{self.port}/link?app={app.name}"}

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        app = self.apps[request.query["app"]]
        transport = request.transport
        connection = Connection(web.WebSocketResponse(autoping=False), transport)
        await connection.socket.prepare(request)
        hello = {"type": "hello", "connection_info": {"app_id": app.id}, "num_connections": 1}
        await connection.socket.send_str(orjson.dumps(hello).decode())
        with self.changed:
            self.connections[app.name].append(connection)
            self.changed.notify_all()
        waiting = [each for each in self._waiting if each.app == app.name]
        self._waiting = [each for each in self._waiting if each.app != app.name]
        for envelope in waiting:
            self._dispatch(envelope)
        try:
            async with asyncio.TaskGroup() as group:
                writer = group.create_task(_write(connection))
                await self._hear(connection)
                writer.cancel()
        finally:
            with self.changed:
                if connection in self.connections[app.name]:
                    self.connections[app.name].remove(connection)
                self.changed.notify_all()
        return connection.socket

    async def _hear(self, connection: Connection) -> None:
        while True:
            message = await connection.socket.receive()
            if message.type in {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED}:
                return
            if connection.silent:
                continue
            if message.type is WSMsgType.PING:
                await connection.socket.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                self._acknowledge(orjson.loads(message.data)["envelope_id"])

    def _acknowledge(self, envelope_id: str) -> None:
        with self.changed:
            envelope = self.unacknowledged.pop(envelope_id, None)
            if envelope is not None:
                if envelope.timer is not None:
                    envelope.timer.cancel()
                self.acknowledged.append(envelope.payload.get("event_id", envelope_id))
            self.changed.notify_all()

    def _emit(self, app: App, kind: str, payload: dict[str, Any]) -> None:
        envelope = Envelope(app.name, kind, payload)
        self._loop.call_soon_threadsafe(self._dispatch, envelope)

    def _dispatch(self, envelope: Envelope) -> None:
        """Send an envelope to one connection of its app, or keep it until there is one."""
        live = self.connections[envelope.app]
        is_event = envelope.kind == "events_api"
        if is_event and ((self.loses_unheard and not live) or self._chance.random() < self.loss):
            with self.changed:
                self.dropped.append(envelope)
                self.changed.notify_all()
            return
        if not live:
            self._waiting.append(envelope)
            self.unheard.append(envelope)
            return
        connection = live[next(self._turn) % len(live)]
        envelope_id = f"env-{next(self._ids):06d}"
        with self.changed:
            self.unacknowledged[envelope_id] = envelope
        frame = {
            "envelope_id": envelope_id,
            "type": envelope.kind,
            "accepts_response_payload": envelope.kind == "interactive",
            "payload": envelope.payload,
        }
        if envelope.kind == "events_api":
            frame |= {"retry_attempt": envelope.attempt}
            frame |= {"retry_reason": "timeout" if envelope.attempt else ""}
        envelope.timer = self._loop.call_later(self._resend_seconds, self._again, envelope_id)
        connection.frames.put_nowait(orjson.dumps(frame).decode())

    def _again(self, envelope_id: str) -> None:
        with self.changed:
            envelope = self.unacknowledged.pop(envelope_id)
            gone = envelope.kind != "events_api" or envelope.attempt >= self._retries
            if gone:
                self.lost.append(envelope)
                self.changed.notify_all()
                return
        envelope.attempt += 1
        self._dispatch(envelope)

    async def _cut(self, app: App) -> None:
        for connection in list(self.connections[app.name]):
            if connection.transport is not None:
                connection.transport.abort()
        with self.changed:
            self.connections[app.name].clear()

    async def _refresh(self, app: App, reason: str) -> None:
        frame = orjson.dumps({"type": "disconnect", "reason": reason}).decode()
        for connection in list(self.connections[app.name]):
            await connection.socket.send_str(frame)
            self.refreshed += 1

    async def _download(self, request: web.Request) -> web.StreamResponse:
        self.downloads.append(request.headers.get("Authorization", ""))
        try:
            app = self._authenticate(request, "download")
            file = self.files[request.match_info["file"]]
        except (SlackSays, KeyError):
            raise web.HTTPFound("/signin") from None
        if "files:read" not in app.scopes:
            raise web.HTTPFound("/signin")
        kind = "text/html" if file.is_canvas else file.media_type
        return web.Response(body=file.content, content_type=kind)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        given = orjson.loads(await request.read())
        with self.changed:
            self.responses.append(given["text"])
            self.changed.notify_all()
        return web.Response(text="ok")

    async def _sign_in(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text=LOGIN_PAGE, content_type="text/html")

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        self.methods.take_upload(request.match_info["number"], await request.read())
        return web.Response(text="OK")


async def _write(connection: Connection) -> None:
    """Send what is queued; on a dead connection it is dropped and resent later."""
    while True:
        frame = await connection.frames.get()
        if not connection.silent:
            with suppress(ConnectionError):
                await connection.socket.send_str(frame)


async def _arguments(request: web.Request, method: str) -> dict[str, Any]:
    """Read the arguments as Slack does: reading methods take none from JSON."""
    given: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json" and method not in READ_ONLY:
        body = await request.read()
        given |= orjson.loads(body) if body else {}
    elif request.content_type != "application/json":
        form: Mapping[str, Any] = await request.post()
        given |= dict(form)
    return given
