"""Settles how bridge, git and agents reach other machines: the proxies, and whom to trust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from app.config.settings import Settings
from app.errors import ConfigurationError

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
