"""Connects one child in its own network to the outside: its HTTP proxy and its forwarded ports.

The child's first program binds the ports inside and sends the listening sockets out; so no part of
the bridge runs inside, and nothing inside reaches an address directly. Every request to the proxy
is checked by name, then by address, and only then connected.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from app.children.network.access import (
    DestinationRefused,
    NetworkAccess,
    NetworkRules,
    SessionHosts,
    Witness,
)
from app.children.network.dialing import Dialer, Route, Streams, Unreachable
from app.config.network import normalise_host, split_port
from app.tasks import Tasks

HEAD_BYTES: Final = 64 * 1024
"""Several times what servers accept as the head of a request."""
_HEAD_SECONDS: Final = 60.0
"""Clients open connections ahead of need, but not for longer."""
_HTTP_PORT: Final = 80
_REQUEST_WORDS: Final = 3
_HOP_BY_HOP: Final = frozenset(
    {"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection"}
)
_CHUNK_BYTES: Final = 256 * 1024
IDLE_SECONDS: Final = 900.0
"""A model may think for minutes without output; a longer silence closes the connection."""


class _BadRequest(Exception):
    """A request that is not for a proxy; carries what is wrong with it."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The head of one request."""

    method: str
    host: str
    port: int
    path: str
    headers: tuple[str, ...]

    @property
    def is_tunnel(self) -> bool:
        return self.method == "CONNECT"

    def head(self, route: Route) -> bytes:
        """Encode it for the other end of a route; one request per connection."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        authority = host if self.port == _HTTP_PORT else f"{host}:{self.port}"
        upstream = route.upstream
        target = f"http://{authority}{self.path}" if upstream else self.path
        lines = [f"{self.method} {target} HTTP/1.1", f"Host: {authority}", "Connection: close"]
        if upstream is not None and upstream.authorization:
            lines.append(f"Proxy-Authorization: {upstream.authorization}")
        return "\r\n".join([*lines, *self.headers, "", ""]).encode("latin-1")


class Proxy:
    """The HTTP proxy of one child."""

    def __init__(self, access: NetworkAccess, dialer: Dialer) -> None:
        self._access = access
        self._dialer = dialer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection and close it."""
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(_parse(head), (reader, writer))
        except _BadRequest as error:
            _reply(writer, HTTPStatus.BAD_REQUEST, str(error))
        except asyncio.LimitOverrunError:
            _reply(writer, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "request headers too large")
        except (asyncio.IncompleteReadError, OSError):
            pass  # the child did not wait for an answer
        finally:
            writer.close()

    async def _answer(self, request: _Request, near: Streams) -> None:
        host, port = request.host, request.port
        try:
            reach = await self._access.reach(host, port)
            dial = self._dialer.tunnel if request.is_tunnel else self._dialer.request
            route = await dial(host, port, reach)
        except DestinationRefused as refusal:
            _reply(near[1], HTTPStatus.FORBIDDEN, f"refused {host}:{port}, {refusal.reason}")
            await self._access.refused(host, port, refusal.reason)
            return
        except Unreachable as error:
            _reply(near[1], HTTPStatus.BAD_GATEWAY, f"{host}:{port} cannot be reached: {error}")
            return
        if request.is_tunnel:
            near[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            route.streams[1].write(request.head(route))
        await relay(near, route.streams)


def _parse(head: bytes) -> _Request:
    first, *headers = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != _REQUEST_WORDS or not words[0].isalpha():
        raise _BadRequest("not an HTTP request")
    method, target, _ = words
    if method == "CONNECT":
        name, port = split_port(target)
        return _Request(method, _host(name), port or _no_port(), "", ())
    scheme, _, rest = target.partition("://")
    if scheme.lower() != "http":
        raise _BadRequest("this is a proxy: use CONNECT or an address that begins with http://")
    authority = rest.partition("/")[0].partition("?")[0].partition("#")[0]
    name, given = split_port(authority.rpartition("@")[2])
    port = _HTTP_PORT if given is None else given or _no_port()
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = (line for line in headers if line.partition(":")[0].strip().lower() not in _HOP_BY_HOP)
    return _Request(method, _host(name), port, path, tuple(kept))


def _host(name: str) -> str:
    host = normalise_host(name)
    if host is None:
        raise _BadRequest("not a valid host name")
    return host


def _no_port() -> int:
    raise _BadRequest("not a valid port")


def _reply(writer: asyncio.StreamWriter, status: HTTPStatus, words: str) -> None:
    body = f"Agent Bridge: {words}.\n".encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)


async def relay(near: Streams, far: Streams) -> None:
    """Relay bytes both ways and close both connections in the end."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(IDLE_SECONDS) as bound, asyncio.TaskGroup() as group:

            def keep_alive() -> None:
                bound.reschedule(loop.time() + IDLE_SECONDS)

            group.create_task(_carry(near[0], far[1], keep_alive))
            group.create_task(_carry(far[0], near[1], keep_alive))
    except* (OSError, TimeoutError):
        pass  # one of the two is gone
    finally:
        near[1].close()
        far[1].close()


async def _carry(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, keep_alive: Callable[[], None]
) -> None:
    while data := await source.read(_CHUNK_BYTES):
        keep_alive()
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()


HANDOVER_SECONDS: Final = 20.0
"""It takes 20 ms; a machine with many starting agents may need many times as long."""
_FIRST_PORT: Final = 18118
"""The proxy's port inside; no known program uses it."""
_CONNECTIONS: Final = 128
"""Open connections per child: a package install needs some 50, each two of our handles."""
_CUT_SECONDS: Final = 2.0
"""How long the end of all connections may take; they are cancelled."""
_LOOPBACK: Final = "127.0.0.1"
_NOT_PROXIED: Final = "localhost,127.0.0.1,::1"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class PortHandover:
    """Loopback ports that are bound inside a sandbox, and where their sockets are sent."""

    channel: int
    """A descriptor that the command inherits: a unix socket; the bridge has the other end."""
    ports: tuple[int, ...]


class HandoverFailed(Exception):
    """The child did not hand over its ports."""


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network of one agent."""

    rules: NetworkRules
    dialer: Dialer
    forwards: tuple[int, ...] = ()
    """Ports on this machine's loopback that the agent reaches on its own loopback."""

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports to bind inside: the proxy's, then the forwarded ones."""
        return () if self.rules.mode == "none" else (self._proxy_port, *self.forwards)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point programs to the proxy."""
        if self.rules.mode == "none":
            return {}
        proxy = f"http://{_LOOPBACK}:{self._proxy_port}"
        named = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy)
        named["NO_PROXY"] = _NOT_PROXIED
        both = named | {name.lower(): value for name, value in named.items()}
        return {**both, "NODE_USE_ENV_PROXY": "1"}

    @property
    def _proxy_port(self) -> int:
        port = _FIRST_PORT
        while port in self.forwards:
            port += 1
        return port


class NetworkLink:
    """The network of one child, from before its start until its end."""

    def __init__(self, plan: NetworkPlan, owner: str, hosts: SessionHosts | None = None) -> None:
        self._plan = plan
        self._tasks = Tasks(f"network of {owner}")
        self._access = NetworkAccess(plan.rules, hosts or SessionHosts(), self._tasks)
        self._mine, self._theirs = socket.socketpair()
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()
        self._is_open = True

    @property
    def handover(self) -> PortHandover | None:
        """Instructions for the first program inside; None if there is nothing to bind."""
        ports = self._plan.ports
        return PortHandover(self._theirs.fileno(), ports) if ports else None

    def tell(self, witness: Witness) -> None:
        """Report refusals to this witness, and ask it, from now on."""
        self._access.witness = witness

    async def serve(self) -> None:
        """Take over the ports from the child that was just started, and serve them.

        Raises:
            HandoverFailed: they did not arrive.
        """
        self._theirs.close()
        sockets = await self._receive() if self._plan.ports else []
        self._mine.close()
        proxy = Proxy(self._access, self._plan.dialer)
        hosts: list[Serve] = [proxy.serve, *map(self._forward, self._plan.forwards)]
        for listening, host in zip(sockets, hosts, strict=False):
            listening.setblocking(False)
            server = await asyncio.start_server(
                self._limit_connections(host), sock=listening, limit=HEAD_BYTES
            )
            self._servers.append(server)

    def resume(self) -> None:
        """Accept connections again."""
        self._is_open = True

    async def pause(self) -> None:
        """Refuse every connection from now on, and end those that are open."""
        self._is_open = False
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=_CUT_SECONDS)

    async def close(self) -> None:
        """End every connection."""
        self._theirs.close()
        self._mine.close()
        for server in self._servers:
            server.close()
        await self._tasks.close()

    async def _receive(self) -> list[socket.socket]:
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._mine.setblocking(False)
        loop.add_reader(self._mine, arrived.set)
        try:
            async with asyncio.timeout(HANDOVER_SECONDS):
                await arrived.wait()
        except TimeoutError:
            raise HandoverFailed(f"no answer within {HANDOVER_SECONDS:g} s") from None
        finally:
            loop.remove_reader(self._mine)
        wanted = len(self._plan.ports)
        try:
            _, descriptors, _, _ = socket.recv_fds(self._mine, 64, wanted)
        except OSError as error:
            raise HandoverFailed(error.strerror) from error
        received = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if len(received) != wanted:
            for each in received:
                each.close()
            raise HandoverFailed("its first program did not run")
        return received

    def _limit_connections(
        self, host: Serve
    ) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        """Serve each connection in a task of this link, up to a limit."""

        def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not self._is_open or len(self._connections) >= _CONNECTIONS:
                writer.close()
                return
            task = self._tasks.start(host(reader, writer), name="connection")
            self._connections.add(task)

            def forget(_task: object) -> None:
                self._connections.discard(task)
                writer.close()  # a task that is cancelled before it begins closes nothing

            task.add_done_callback(forget)

        return receive

    def _forward(self, port: int) -> Serve:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for address in (_LOOPBACK, "::1"):
                with suppress(OSError):
                    far = await self._plan.dialer.outside.connect(address, port)
                    await relay((reader, writer), far)
                    return
            writer.close()

        return serve
