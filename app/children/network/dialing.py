"""Connects to a destination that is allowed by name, after checking its addresses.

The connection is made to the very address that was checked: a name that resolves differently a
moment later gains nothing.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket
import ssl
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from app.children.network.access import DestinationRefused, NetworkReach
from app.config.network import split_port

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_LOOKUPS: Final = 16
"""Threads for lookups: the event loop's are needed for files, and a lookup may hang."""
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All that was ever assigned; the rest of IPv6 is local or reserved."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_AZURE: Final = ipaddress.IPv4Address("168.63.129.16")
"""Azure's wire server: a public address by its number, which every machine there reaches at home.
https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""
_ANY_PORT: Final = 9
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_CONNECT_SECONDS: Final = 20.0
"""For all addresses of a host together; a host that takes longer is down."""
_ADDRESSES: Final = 4
"""How many addresses of a host are tried."""
_ANSWER_BYTES: Final = 16 * 1024
"""The longest answer of an upstream proxy before a tunnel is open."""
_OK: Final = b"200"


class Outside(Protocol):
    """The network that the bridge itself is in."""

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a host.

        Raises:
            OSError: it has none, or the lookup failed.
        """
        ...

    async def connect(self, address: str, port: int) -> Streams:
        """Connect to an address.

        Raises:
            OSError: it does not answer.
        """
        ...


class Internet:
    """The network of this machine."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="lookup")

    async def resolve(self, host: str) -> Sequence[str]:
        """Return the addresses of a host, the preferred one first."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def connect(self, address: str, port: int) -> Streams:
        """Connect to an address."""
        return await asyncio.open_connection(address, port)


def is_public(address: str) -> bool:
    """Tell whether an address is global unicast; addresses that wrap another are unwrapped."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # also an address with a zone: those are link-local
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        is_local = parsed.is_multicast or parsed.is_reserved or parsed == _AZURE
        return parsed.is_global and not is_local
    if parsed.ipv4_mapped is not None:
        return is_public(str(parsed.ipv4_mapped))
    if parsed in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    if parsed.sixtofour is not None or parsed.teredo is not None:
        return False
    return parsed in _GLOBAL_UNICAST and parsed.is_global


def is_own(address: str) -> bool:
    """Tell whether an address belongs to this machine, so that it would connect to itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback or parsed.is_unspecified:
        return True
    family = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as line:
            line.connect((str(parsed), _ANY_PORT))  # sends nothing
            return ipaddress.ip_address(line.getsockname()[0]) == parsed
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """An HTTP proxy."""

    host: str
    port: int
    tls: bool = False
    authorization: str = ""
    """The value of `Proxy-Authorization`; empty if it needs none."""


def find_upstream(
    environment: Mapping[str, str], scheme: str, host: str, port: int
) -> UpstreamProxy | None:
    """Find the proxy for a destination; None if it is reached directly.

    Proxies that speak SOCKS are not used.
    """
    settings = {
        name.lower().removesuffix("_proxy"): value
        for name, value in environment.items()
        if name.lower().endswith("_proxy") and value
    }
    url = settings.get(scheme) or settings.get("all")
    excepted = (entry.strip().lower() for entry in settings.get("no", "").split(","))
    if url is None or any(_covers(entry, host, port) for entry in excepted if entry):
        return None
    return _parse_proxy(url)


def _covers(entry: str, host: str, port: int) -> bool:
    """Tell whether an entry of NO_PROXY covers a host: the host itself, or its domain."""
    name, given = split_port(entry)
    domain = name.removeprefix("*").removeprefix(".")
    return given in (None, port) and (not domain or f".{host}".endswith(f".{domain}"))


def _parse_proxy(url: str) -> UpstreamProxy | None:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    return UpstreamProxy(parts.hostname, port, parts.scheme == "https", authorization)


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

    async def tunnel(self, host: str, port: int, reach: NetworkReach) -> Route:
        """Open a connection that carries raw bytes.

        Raises:
            Refused: an address of the host is out of reach.
            Unreachable: the host does not answer.
        """
        return await self._dial_in_time("https", host, port, reach)

    async def request(self, host: str, port: int, reach: NetworkReach) -> Route:
        """Open a connection for one plain HTTP request; raises as `tunnel` does."""
        return await self._dial_in_time("http", host, port, reach)

    async def _dial_in_time(self, scheme: str, host: str, port: int, reach: NetworkReach) -> Route:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await self._dial(scheme, host, port, reach)
        except TimeoutError:
            raise Unreachable(f"no answer within {_CONNECT_SECONDS:g} s") from None
        except OSError as error:
            raise Unreachable(error.strerror or str(error) or type(error).__name__) from error

    async def _dial(self, scheme: str, host: str, port: int, reach: NetworkReach) -> Route:
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
        # The operator's own proxy, wherever that is.
        tls = ssl.create_default_context() if upstream.tls else None
        streams = await asyncio.open_connection(upstream.host, upstream.port, ssl=tls)
        if scheme == "http":
            return Route(streams, upstream)
        await _open_tunnel(streams, upstream, host, port)
        return Route(streams)

    def _check(self, addresses: Sequence[str], port: int, reach: NetworkReach) -> None:
        """Refuse a host if any of its addresses is out of reach: any of them might be used."""
        for address in addresses:
            local = not is_public(address) or is_own(address)
            if local and port in self.own_ports and is_own(address):
                raise DestinationRefused("the bridge itself is off limits")
            if local and reach is not NetworkReach.ANYWHERE:
                raise DestinationRefused("not an address on the internet")

    async def _connect(self, addresses: Sequence[str], port: int) -> Streams:
        failure: OSError = OSError("no address found")
        for address in addresses[:_ADDRESSES]:
            try:
                return await self.outside.connect(address, port)
            except OSError as error:
                failure = error
        raise failure


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
