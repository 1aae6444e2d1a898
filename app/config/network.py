"""Describes how bridge and agents reach other machines: hosts, proxies, and whom to trust."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from app.config.fields import is_loopback
from app.config.settings import Settings
from app.errors import ConfigurationError

_NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_-]{1,63})*")
_LARGEST_PORT: Final = 65535
GROUP: Final = re.compile(r"@[a-z][a-z0-9-]*")
"""How a group of hosts is written."""
_BEGINNING: Final = b"-----BEGIN CERTIFICATE-----"
AUTHORITIES: Final = (
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",  # node, and so most agents
    "GIT_SSL_CAINFO",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",  # pip, and many programs in Python
)
"""The variables that name a file of authorities: each program reads only its own."""
OUTBOUND: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", *AUTHORITIES})
"""All variables that are set here."""


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
        return is_loopback(self.name)


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


def outbound_variables(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which programs reach other machines; those that are set stay.

    Raises:
        ConfigurationError: the file of authorities is not one.
    """
    proxies = {
        "HTTP_PROXY": settings.http_proxy,
        "HTTPS_PROXY": settings.https_proxy,
        "NO_PROXY": settings.no_proxy,
    }
    given = {name: value for name, value in proxies.items() if value is not None}
    if settings.ssl_cert_file is not None:
        _check_authorities(Path(settings.ssl_cert_file))
        given |= {name: environ.get(name, settings.ssl_cert_file) for name in AUTHORITIES}
    return given


def proxy_passwords(settings: Settings) -> Iterator[SecretStr]:
    """Yield the passwords in the addresses of proxies."""
    for url in filter(None, (settings.http_proxy, settings.https_proxy)):
        if password := urlsplit(url).password:
            yield SecretStr(unquote(password))


def _check_authorities(path: Path) -> None:
    try:
        found = path.is_absolute() and _BEGINNING in path.read_bytes()
    except OSError:
        found = False
    if not found:
        raise ConfigurationError(
            "SSL_CERT_FILE",
            "does not name a readable file of certificates by its absolute path",
            "Name a PEM file with every authority to trust, the public ones too.",
        )
