"""Describes agents on other machines: their address, and the keys that their entries cannot have.

What decides how a program runs on this machine is refused for one that runs elsewhere: a sandbox
that protects nothing must not be believed in.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import PlainValidator

from app.config.fields import is_loopback
from app.config.network import normalise_host
from app.config.sources import refusal

AGENT_TOKEN: Final = "AGENT_TOKEN"  # noqa: S105 - a name
"""The variable with the token of an agent on another machine; the bridge sends it there."""
_LOCAL_KEYS: Final = frozenset(
    {
        *("command", "env", "env_passthrough", "home", "sandbox", "network", "network_hosts"),
        *("tool_exposure", "tools_allow", "tools_deny", "capabilities_allow", "capabilities_deny"),
        *("agents_allow", "agents_deny", "ship", "limits.processes", "limits.memory_mb"),
        *("limits.open_files", "limits.file_mb", "limits.disk_mb"),
    }
)
"""Keys that say how the bridge runs a program on its own machine, and what it gives it there."""
_REMOTE_KEYS: Final = frozenset({"remote_folder", "tls"})
_PLAIN: Final = frozenset({"ws", "http"})
_METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        ("168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254"),
    )
)
"""Where clouds tell a machine its own secrets, beside the link-local addresses."""
REMOTE_PORTS: Final = {"ws": 80, "wss": 443, "http": 80, "https": 443}
"""How an agent on another machine is reached, each with its usual port."""


@dataclass(frozen=True, slots=True)
class RemoteUrl:
    """The address of an agent on another machine."""

    url: str
    scheme: str
    host: str
    port: int


def parse_remote(text: str) -> RemoteUrl | None:
    """Parse the address of an agent; None if it is none, or if it holds more than that."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    name = parts.hostname or ""
    host = normalise_host(f"[{name}]" if ":" in name else name)
    more = parts.username or parts.password or parts.query or parts.fragment
    if parts.scheme not in REMOTE_PORTS or host is None or more or port == 0:
        return None
    return RemoteUrl(parts.geturl(), parts.scheme, host, port or REMOTE_PORTS[parts.scheme])


def is_metadata_address(address: str) -> bool:
    """Tell whether an address is one at which a cloud tells a machine about itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_link_local or parsed in _METADATA


def _url(value: object) -> object:
    remote = parse_remote(value) if isinstance(value, str) else None
    if remote is None:
        raise refusal(
            "is not the address of an agent",
            "Write wss://host/path or https://host/path, without user name, password or query: the "
            "token is a secret.",
        )
    if is_metadata_address(remote.host):
        raise refusal(
            "is an address at which a machine's provider answers, not an agent",
            "Write the address of the machine that the agent runs on.",
        )
    return remote.url


Url = Annotated[str, PlainValidator(_url)]


def refuse_keys_of_local(given: AbstractSet[str]) -> None:
    """Refuse keys of an entry with a url that only hold for a program on this machine."""
    if found := given & _LOCAL_KEYS:
        raise refusal(
            f"has url and {min(found)}, but what runs elsewhere is not the bridge's to set",
            "Remove one of the two: program, variables, files and protection are set where the "
            "agent runs.",
        )


def refuse_keys_of_remote(given: AbstractSet[str]) -> None:
    """Refuse keys of an entry without a url that only hold for one."""
    if given & _REMOTE_KEYS:
        raise refusal(
            "has remote_folder or tls, which only an agent with a url has",
            "Add url, or remove them.",
        )


def require_tls(url: str) -> None:
    """Refuse an address whose words others could read."""
    remote = parse_remote(url)
    if remote is not None and remote.scheme in _PLAIN and not is_loopback(remote.host):
        raise refusal(
            "has a url without TLS, so others could read its token and every word",
            'Write wss:// or https://, or "tls": "off" if the network in between is yours alone.',
        )
