"""Computes the origin of our pages under a host name."""

from __future__ import annotations

from urllib.parse import urlsplit


def own_origin(host: str, base_url: str) -> str:
    """Return the origin of our pages under a host: https only where BRIDGE_BASE_URL says so."""
    base = urlsplit(base_url.lower())
    scheme = base.scheme if host.lower() == base.netloc else "http"
    return f"{scheme}://{host.lower()}"
