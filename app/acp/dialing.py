"""Connects to agents on other machines, and says why one cannot be reached.

The address that is connected to is checked, whatever its name says and wherever a redirect leads.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from app.acp.launch import RemoteAddress
from app.acp.numbered import PLAIN_PROTOCOL, PROTOCOL
from app.acp.transport import MAX_FRAME_BYTES
from app.children.network.dialing import find_upstream
from app.config.remote import is_metadata_address, parse_remote
from app.errors import AgentNotStarted

CONNECT_SECONDS: Final = 20.0
"""For a name, a connection, TLS and the first answer; a host that takes longer is down."""
HEARTBEAT_SECONDS: Final = 20.0
"""A connection that is silent for longer has been cut without a word."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60.0, sock_connect=CONNECT_SECONDS)
"""For one request: an agent answers `initialize` at once, and only takes everything else."""
_NUMBER_BYTES: Final = 24
"""The longest number before a line."""

_CHECK_TOKEN: Final = "Set {setting} to the token that it expects."  # noqa: S105 - a sentence
_CHECK_URL: Final = "Check url in its entry, and that the agent or its relay runs there."
_CHECK_TLS: Final = (
    "Use a certificate for that name, by an authority that this machine trusts; SSL_CERT_FILE "
    "names others."
)

Socket = aiohttp.ClientWebSocketResponse
UNREACHED: Final = (aiohttp.ClientError, OSError, TimeoutError, ValueError, LookupError)
"""What opening a connection may raise."""


def new_session() -> aiohttp.ClientSession:
    """Make what holds the connections to one agent."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(socket_factory=_checked_socket))


async def open_socket(session: aiohttp.ClientSession, address: RemoteAddress) -> Socket:
    """Connect to an agent; the caller bounds the time."""
    made: Socket = await session.ws_connect(
        address.url,
        protocols=(PLAIN_PROTOCOL, PROTOCOL),
        heartbeat=HEARTBEAT_SECONDS,
        max_msg_size=MAX_FRAME_BYTES + _NUMBER_BYTES,
        **_way(address, {}),
    )
    return made


def request_options(address: RemoteAddress, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return what every HTTP request to an agent has; no token follows a redirect."""
    return {**_way(address, headers), "timeout": _TIMEOUT, "allow_redirects": False}


def _way(address: RemoteAddress, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return how an agent is reached: with its token, and by the bridge's own proxy."""
    own = {}
    if address.token is not None:
        own["Authorization"] = f"Bearer {address.token.get_secret_value()}"
    proxy, proxy_headers = _find_proxy(address)
    return {"headers": {**headers, **own}, "proxy": proxy, "proxy_headers": proxy_headers}


def explain(error: Exception, name: str, address: RemoteAddress) -> AgentNotStarted:
    """Say why an agent cannot be reached, and what to do about it."""
    match error:
        case aiohttp.ClientResponseError(status=401 | 403):
            problem = "refused the token"
            remedy = _CHECK_TOKEN.format(setting=address.setting)
        case aiohttp.ClientResponseError(status=status):
            problem, remedy = f"has no agent at that path (HTTP {status})", _CHECK_URL
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            problem, remedy = f"is not trusted ({_reason(error)})", _CHECK_TLS
        case TimeoutError():
            problem, remedy = f"did not answer in {CONNECT_SECONDS:g} s", _CHECK_URL
        case _:
            problem, remedy = f"cannot be reached ({_reason(error)})", _CHECK_URL
    return AgentNotStarted(name, f"{address.host} {problem}", remedy)


def _checked_socket(info: tuple[Any, ...]) -> socket.socket:
    """Make the socket of a connection, unless it leads to what tells secrets of this machine."""
    family, kind, protocol, _, to = info
    if is_metadata_address(str(to[0])):
        raise OSError(None, "not an address of an agent")
    return socket.socket(family, kind, protocol)


def _find_proxy(address: RemoteAddress) -> tuple[str | None, dict[str, str] | None]:
    """Find the proxy on the way to a host, and what to say to it."""
    remote = parse_remote(address.url)
    assert remote is not None, "the entry was checked"
    scheme = "https" if remote.scheme in {"wss", "https"} else "http"
    found = find_upstream(address.environment, scheme, remote.host, remote.port)
    if found is None:
        return None, None
    headers = {"Proxy-Authorization": found.authorization} if found.authorization else None
    return f"{'https' if found.tls else 'http'}://{found.host}:{found.port}", headers


def _reason(error: Exception) -> str:
    """Say in a few words why a connection failed."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return inner.verify_message
    words = inner.strerror if isinstance(inner, OSError) else ""
    return words or str(inner) or type(inner).__name__
