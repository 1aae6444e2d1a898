"""Writes the addresses at which people find a place or a file on the page."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from app.config import Configuration
from app.config.fields import is_loopback
from app.model.conversations import path_of
from app.model.keys import PlaceKey


class Addresses:
    """The addresses of one bridge; empty if only this machine could open them."""

    def __init__(self, configuration: Configuration) -> None:
        base = configuration.base_url
        self._base = "" if is_loopback(urlsplit(base).hostname or "") else base

    def page(self, place: PlaceKey) -> str:
        """Return the address of a place's page."""
        return self._base and f"{self._base}{path_of(place)}"

    def file(self, url: str) -> str:
        """Return the address of a stored file."""
        return self._base and f"{self._base}/uploads/{quote(url)}"
