"""Parses the hosts an agent may connect to: names, wildcards, addresses, with or without a port."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

_NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_-]{1,63})*")
_LARGEST_PORT: Final = 65535
GROUP: Final = re.compile(r"@[a-z][a-z0-9-]*")
"""How a group of hosts is written."""


@dataclass(frozen=True, slots=True)
class HostPattern:
    """One entry of an agent's list of hosts."""

    name: str
    """A host name, an address, or `*.` and a domain, which covers everything below it."""
    port: int | None = None
    """The only port it covers; None for any."""

    def covers(self, host: str, port: int) -> bool:
        """Tell whether it covers a destination; `host` as `normalise_host` returns it."""
        if self.port not in (None, port):
            return False
        if self.name.startswith("*."):
            return host.endswith(self.name[1:])
        return host == self.name

    @property
    def is_loopback(self) -> bool:
        """Whether it names this machine itself."""
        return self.name == "localhost" or _is_loopback_address(self.name)


def parse_host(text: str) -> HostPattern | None:
    """Parse `api.example.com`, `*.example.com`, `host:port` or `[::1]:port`; None for the rest."""
    name, port = split_port(text)
    if name.startswith("*."):
        domain = normalise_host(name[2:])
        normal = f"*.{domain}" if domain and "." in domain else None
    else:
        normal = normalise_host(name)
    if normal is None or port == 0:
        return None
    return HostPattern(normal, port)


def split_port(text: str) -> tuple[str, int | None]:
    """Split `host:port`; the port is None if there is none, and 0 if it is invalid."""
    host, colon, digits = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text, None
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:6]) <= _LARGEST_PORT):
        return host, 0
    return host, int(digits)


def normalise_host(text: str) -> str | None:
    """Return a host in lower case, without brackets or trailing dot; None if it is not a host."""
    host = text.lower()
    if host.startswith("[") and host.endswith("]"):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            return None
    host = host.removesuffix(".")
    return host if _NAME.fullmatch(host) else None


def is_address(host: str) -> bool:
    """Tell whether a host is an IP address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback_address(host: str) -> bool:
    return is_address(host) and ipaddress.ip_address(host).is_loopback
