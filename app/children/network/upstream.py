"""Finds the bridge's own upstream proxy, if its environment names one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from app.config.network import split_port

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


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
    return _parse(url)


def _covers(entry: str, host: str, port: int) -> bool:
    """Tell whether an entry of NO_PROXY covers a host: the host itself, or its domain."""
    name, given = split_port(entry)
    domain = name.removeprefix("*").removeprefix(".")
    return given in (None, port) and (not domain or f".{host}".endswith(f".{domain}"))


def _parse(url: str) -> UpstreamProxy | None:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    return UpstreamProxy(parts.hostname, port, parts.scheme == "https", authorization)
