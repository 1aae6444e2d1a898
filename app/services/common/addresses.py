"""Tells whether a platform can reach the bridge, and what to set if it cannot."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from app.config.fields import is_loopback
from app.errors import ConfigurationError

SETTING: Final = "BRIDGE_BASE_URL"
REMEDY: Final = f"Set {SETTING} to the public https address of this bridge; a tunnel works too."


def is_public(base_url: str) -> bool:
    """Tell whether a platform can reach an address: https, and not this machine only."""
    parts = urlsplit(base_url)
    return parts.scheme == "https" and not is_loopback(parts.hostname or "")


def require_public(base_url: str, platform: str) -> None:
    """Refuse an address that a platform cannot send webhooks to.

    Raises:
        ConfigurationError: it is on this machine only, or not https.
    """
    if not is_public(base_url):
        raise ConfigurationError(SETTING, f"{platform} cannot reach {base_url}", REMEDY)
