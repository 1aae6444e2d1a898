"""Cleans what goes out to a platform: no secret, no picture from elsewhere, no false link.

The last step before a call, after every cut: what is cut out of code is no code any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from app.config.network import HostPattern, normalise_host, parse_host
from app.markdown.writing import disarm
from app.vault import Vault

T = TypeVar("T")


class Outgoing:
    """What one agent may say on one platform."""

    def __init__(self, vault: Vault, own: Sequence[str], listed: Sequence[HostPattern]) -> None:
        """Allow pictures from the platform's own hosts, and from those on the agent's list."""
        self._vault = vault
        self._hosts = [*filter(None, map(parse_host, own)), *listed]

    def clean(self, said: T) -> T:
        """Clean every text in JSON values that are sent."""
        cleaned: T = self._disarm_json(self._vault.redact_json(said))
        return cleaned

    def disarm(self, text: str) -> str:
        """Put pictures from elsewhere into code, and show where false links lead."""
        return disarm(text, self._allows)

    def _disarm_json(self, value: Any) -> Any:
        match value:
            case str():
                return self.disarm(value)
            case dict():
                return {key: self._disarm_json(item) for key, item in value.items()}
            case list() | tuple():
                return [self._disarm_json(item) for item in value]
            case _:
                return value

    def _allows(self, host: str, port: int) -> bool:
        name = normalise_host(host)
        return name is not None and any(each.covers(name, port) for each in self._hosts)
