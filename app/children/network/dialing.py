"""Connects to a destination that is allowed by name, after checking its addresses.

The connection is made to the very address that was checked: a name that resolves differently a
moment later gains nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.children.network.addresses import is_own, is_public
from app.children.network.outside import Outside, Streams
from app.children.network.rules import Reach, Refused
from app.children.network.upstream import UpstreamProxy, find_upstream

_CONNECT_SECONDS: Final = 20.0
"""For all addresses of a host together; a host that takes longer is down."""
_ADDRESSES: Final = 4
"""How many addresses of a host are tried."""
_ANSWER_BYTES: Final = 16 * 1024
"""The longest answer of an upstream proxy before a tunnel is open."""
_OK: Final = b"200"


class Unreachable(Exception):
    """A destination did not answer; carries the reason."""


@dataclass(frozen=True, slots=True)
class Route:
    """An open connection on the way to a destination."""

    streams: Streams
    upstream: UpstreamProxy | None = None
    """The proxy at its other end, which needs the full target of a request."""


@dataclass(frozen=True, slots=True)
class Dialer:
    """Makes the connections of one agent."""

    outside: Outside
    own_ports: Collection[int]
    """The bridge's own ports: closed on every address of this machine, even if listed."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that name the bridge's own upstream proxy."""

    async def tunnel(self, host: str, port: int, reach: Reach) -> Route:
        """Open a connection that carries raw bytes.

        Raises:
            Refused: an address of the host is out of reach.
            Unreachable: the host does not answer.
        """
        return await self._dial_in_time("https", host, port, reach)

    async def request(self, host: str, port: int, reach: Reach) -> Route:
        """Open a connection for one plain HTTP request; raises as `tunnel` does."""
        return await self._dial_in_time("http", host, port, reach)

    async def _dial_in_time(self, scheme: str, host: str, port: int, reach: Reach) -> Route:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await self._dial(scheme, host, port, reach)
        except TimeoutError:
            raise Unreachable(f"no answer within {_CONNECT_SECONDS:g} s") from None
        except OSError as error:
            raise Unreachable(error.strerror or str(error) or type(error).__name__) from error

    async def _dial(self, scheme: str, host: str, port: int, reach: Reach) -> Route:
        upstream = find_upstream(self.environment, scheme, host, port)
        try:
            addresses = await self.outside.resolve(host)
        except OSError:
            # Behind a proxy, often only that proxy can resolve names.
            if upstream is None:
                raise
            addresses = ()
        self._check(addresses, port, reach)
        if upstream is None or any(not is_public(address) for address in addresses):
            return Route(await self._connect(addresses, port))
        streams = await self._connect_upstream(upstream)
        if scheme == "http":
            return Route(streams, upstream)
        await _open_tunnel(streams, upstream, host, port)
        return Route(streams)

    def _check(self, addresses: Sequence[str], port: int, reach: Reach) -> None:
        """Refuse a host if any of its addresses is out of reach: any of them might be used."""
        for address in addresses:
            local = not is_public(address) or is_own(address)
            if local and port in self.own_ports and is_own(address):
                raise Refused("the bridge itself is off limits")
            if local and reach is not Reach.ANYWHERE:
                raise Refused("not an address on the internet")

    async def _connect(self, addresses: Sequence[str], port: int) -> Streams:
        failure: OSError = OSError("no address found")
        for address in addresses[:_ADDRESSES]:
            try:
                return await self.outside.connect(address, port)
            except OSError as error:
                failure = error
        raise failure

    async def _connect_upstream(self, upstream: UpstreamProxy) -> Streams:
        """Connect to the operator's own proxy, wherever that is."""
        tls = ssl.create_default_context() if upstream.tls else None
        return await asyncio.open_connection(upstream.host, upstream.port, ssl=tls)


async def _open_tunnel(streams: Streams, upstream: UpstreamProxy, host: str, port: int) -> None:
    reader, writer = streams
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if upstream.authorization:
        lines.append(f"Proxy-Authorization: {upstream.authorization}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        answer = b""
    if len(answer) > _ANSWER_BYTES or answer.split(b" ", 2)[1:2] != [_OK]:
        writer.close()
        status = answer.split(b"\r\n", 1)[0].decode("ascii", "replace")[:100]
        raise Unreachable(f"this machine's proxy did not connect: {status or 'no answer'}")
