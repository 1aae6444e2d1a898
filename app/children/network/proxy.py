"""Serves one child's HTTP proxy requests: `CONNECT`, and plain requests to `http://` addresses.

Every request is checked by name, then by address, and only then connected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from app.children.network.access import DestinationRefused, NetworkAccess
from app.children.network.dialing import Dialer, Route, Streams, Unreachable
from app.config.network import normalise_host, split_port

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
