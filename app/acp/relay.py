"""Puts a WebSocket with a token in front of an agent program, for a bridge on another machine.

Each connection gets a process of its own and passes its lines unread. A process without a
connection is kept for a while and continues with the next one that names it; then it ends, with all
that it started. Without the token nothing starts, and no web page gets in.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import WSMsgType, hdrs, web
from pydantic import SecretStr

from app.acp.numbered import KEPT_BYTES, PROTOCOL, NumberedLines, control, read_control
from app.acp.transport import BLOCK_BYTES, FrameTooLong, Framing
from app.children.environment import MARKER
from app.children.proc_table import new_marker
from app.children.process import Child
from app.children.spawn import ChildCommand, spawn
from app.children.stop import stop
from app.errors import AgentNotStarted
from app.tasks import Tasks

logger = logging.getLogger(__name__)

HOLD_SECONDS: Final = 60.0
"""How long a process waits for its bridge: a restart of a network, not of a night."""
CONNECTIONS: Final = 8
"""As many agents as a usual machine can run."""
MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""A prompt with all the files that one may carry, as base64."""
HELLO_SECONDS: Final = 10.0
"""A bridge says at once who it is."""
HEARTBEAT_SECONDS: Final = 20.0
"""A connection that is silent for longer has been cut without a word."""
_CLOSE_SECONDS: Final = 1.0
_LAST_WORDS: Final = 500


@dataclass(frozen=True, slots=True)
class RelayedCommand:
    """What runs behind a relay."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path


class RelayedAgent:
    """One process, and the socket that leads to it just now."""

    def __init__(self, child: Child, owner: str, **facts: Any) -> None:
        """Relay a process; `facts` are what a bridge is told of it."""
        self.id = secrets.token_urlsafe(24)
        self.owner = owner
        """The session that it belongs to, as its bridge calls it; empty if to none."""
        self.has_ended = asyncio.Event()
        self.attached, self.detached = asyncio.Event(), asyncio.Event()
        self.detached.set()
        self._child = child
        self._facts = facts
        self._lines = NumberedLines()
        self._socket: web.WebSocketResponse | None = None
        self._transport: asyncio.Transport | None = None
        self._sending = asyncio.Lock()
        self._has_room = asyncio.Event()
        self.how_ended: dict[str, Any] = {}
        """What the bridge is told of the end."""
        self._has_told_end = False

    async def run(self) -> None:
        """Pass on what the process writes, until it has ended."""
        problem = ""
        try:
            await self._pump()
        except FrameTooLong as error:
            problem = str(error)
        report = await stop(self._child)
        words = self._child.last_words(_LAST_WORDS)
        self.how_ended = {"status": report.status, "words": words, "problem": problem}
        self.has_ended.set()
        await self._tell_end()

    async def end(self) -> None:
        """End the process and all that it started."""
        await stop(self._child)
        await self.has_ended.wait()

    async def attend(
        self, socket: web.WebSocketResponse, request: web.Request, received: int
    ) -> bool:
        """Serve a connection from where the last one was cut; True if there is nothing to keep."""
        if self._transport is not None:
            self._transport.abort()  # the bridge knows better that it is cut
        self._transport = transport = request.transport
        async with self._sending:
            here = {"connection": self.id, "received": self._lines.received}
            await socket.send_str(control(**self._facts, **here))
            for frame in self._lines.missing(received):
                await socket.send_bytes(frame)
            self._attach(socket)
        self._has_room.set()
        try:
            await self._tell_end()
            return await self._listen(socket) or self._has_told_end
        finally:
            if self._transport is transport:
                self._attach(None)

    def _attach(self, socket: web.WebSocketResponse | None) -> None:
        self._socket = socket
        now, before = (self.attached, self.detached) if socket else (self.detached, self.attached)
        before.clear()
        now.set()

    async def _listen(self, socket: web.WebSocketResponse) -> bool:
        """Pass on what the bridge says; ends with the connection."""
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                line = self._lines.take(message.data)
                if line is not None and not self.has_ended.is_set():
                    self._child.write(line + b"\n")
                    await self._child.drain()
                if (confirmation := self._lines.confirm()) is not None:
                    await socket.send_str(confirmation)
            elif message.type is WSMsgType.TEXT:
                facts = read_control(message.data)
                if facts.get("end"):
                    return True
                self._lines.drop(int(facts.get("received", 0)))
                self._has_room.set()
        return False

    async def _pump(self) -> None:
        framing = Framing()
        while block := await self._child.stdout.read(BLOCK_BYTES):
            for line in framing.feed(block):
                await self._send(line)
        for line in framing.finish():
            await self._send(line)

    async def _send(self, line: bytes) -> None:
        while self._lines.kept_bytes > KEPT_BYTES:
            self._has_room.clear()
            await self._has_room.wait()
        async with self._sending:
            frame = self._lines.number(line)
            if self._socket is not None:
                try:
                    await self._socket.send_bytes(frame)
                except ConnectionError:
                    self._socket = None  # kept: the next connection gets it

    async def _tell_end(self) -> None:
        if self.has_ended.is_set() and self._socket is not None:
            async with self._sending:
                try:
                    await self._socket.send_str(control(ended=self.how_ended))
                    self._has_told_end = True
                    await self._socket.close()
                except ConnectionError:
                    return


class Relay:
    """All connections and processes of one relay."""

    def __init__(
        self,
        command: RelayedCommand,
        token: SecretStr,
        *,
        connections: int = CONNECTIONS,
        hold_seconds: float = HOLD_SECONDS,
    ) -> None:
        self._command = command
        self._token = b"Bearer " + token.get_secret_value().encode()
        self._most = connections
        self._hold_seconds = hold_seconds
        self._agents: dict[str, RelayedAgent] = {}
        self._starting = 0
        self._name = Path(command.argv[0]).name
        self._marker = secrets.token_hex(8)
        self._tasks = Tasks("relay")

    def application(self) -> web.Application:
        """Return what is served: one WebSocket, at every path."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._serve)
        application.on_shutdown.append(self._close)
        return application

    async def _close(self, _application: web.Application) -> None:
        await asyncio.gather(*(self._end(agent) for agent in list(self._agents.values())))
        await self._tasks.close()

    def _check(self, request: web.Request) -> None:
        """Refuse strangers before anything is started for them."""
        given = request.headers.get(hdrs.AUTHORIZATION, "").encode(errors="replace")
        if hdrs.ORIGIN in request.headers:
            logger.warning("refused a web page from %s", request.remote)
            raise web.HTTPForbidden(text="No web page may use this relay.\n")
        if not hmac.compare_digest(given, self._token):
            logger.warning("refused %s: no token, or a wrong one", request.remote)
            raise web.HTTPUnauthorized(text="Send the relay's token as a bearer token.\n")
        if PROTOCOL not in request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, ""):
            raise web.HTTPUpgradeRequired(text="This relay serves Agent Bridge only.\n")

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self._check(request)
        socket = web.WebSocketResponse(
            protocols=(PROTOCOL,),
            heartbeat=HEARTBEAT_SECONDS,
            timeout=_CLOSE_SECONDS,
            max_msg_size=MAX_MESSAGE_BYTES,
            compress=False,
        )
        await socket.prepare(request)
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = read_control(await socket.receive_str())
            agent = await self._find(hello)
            if agent is None:
                refused = "gone" if hello.get("connection") else "full"
                await socket.send_str(control(refused=refused))
            elif await agent.attend(socket, request, int(hello.get("received", 0))):
                await self._end(agent)
                if not socket.closed:
                    await socket.send_str(control(ended=agent.how_ended))
        except AgentNotStarted as error:
            await socket.send_str(control(ended={"status": None, "words": str(error)}))
        except (ValueError, TypeError, TimeoutError, ConnectionError) as error:
            logger.info("a connection from %s ended: %s", request.remote, error)
        finally:
            await socket.close()
        return socket

    async def _find(self, hello: Mapping[str, Any]) -> RelayedAgent | None:
        """Return the process that a connection continues with, or a new one; None: neither."""
        if named := hello.get("connection"):
            return self._agents.get(str(named))
        owner = str(hello.get("owner", ""))
        # A bridge that comes back without a connection has lost it: two must not write one
        # conversation.
        for other in [each for each in self._agents.values() if owner and each.owner == owner]:
            await self._end(other)
        if len(self._agents) + self._starting >= self._most:
            logger.warning("refused a connection: %d processes run already", self._most)
            return None
        self._starting += 1
        try:
            agent = await self._start(owner)
        finally:
            self._starting -= 1
        self._agents[agent.id] = agent
        self._tasks.start(self._keep(agent), name=f"agent {agent.id[:6]}")
        return agent

    async def _start(self, owner: str) -> RelayedAgent:
        command = self._command
        environment = {**command.environment, MARKER: new_marker(self._marker)}
        child = await spawn(
            ChildCommand(command.argv), name=self._name, env=environment, cwd=command.folder
        )
        logger.info("started %s (%d)", self._name, child.pid)
        return RelayedAgent(child, owner, folder=str(command.folder), hold=self._hold_seconds)

    async def _keep(self, agent: RelayedAgent) -> None:
        """Let a process wait for its bridge, and end it when that took too long."""
        self._tasks.start(agent.run(), name=f"output {agent.id[:6]}")
        try:
            while True:
                await agent.detached.wait()
                async with asyncio.timeout(self._hold_seconds):
                    await agent.attached.wait()
        except TimeoutError:
            await self._end(agent)

    async def _end(self, agent: RelayedAgent) -> None:
        if self._agents.pop(agent.id, None) is not None:
            await agent.end()
            logger.info("ended %s", self._name)
