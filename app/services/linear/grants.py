"""Stores, sealed, what Linear granted when an admin installed an agent's application.

Linear issues a new refresh token with every renewal, so the last one is committed before it is
used: an agent that loses it must be installed again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from app.clock import Clock
from app.config.sealing import Sealer
from app.retry import persist
from app.services.linear.wording import UNREADABLE
from app.store.sealed import SealedStore


@dataclass(frozen=True, slots=True)
class Grant:
    """One installation: its application and its current tokens."""

    client: str
    """The OAuth application that was installed."""
    access: str = ""
    refresh: str = ""
    until: float = 0.0
    """When the access token ends, in seconds since 1970."""
    scope: str = ""
    ended: str = ""
    """Why it is no longer valid; empty while it is."""


class Grants:
    """Stores one agent's grant."""

    def __init__(self, adapter: str, store: SealedStore, sealer: Sealer) -> None:
        self._name = f"grant:{adapter}"
        self._store = store
        self._sealer = sealer

    def read(self, client: str) -> Grant | None:
        """Read the grant of an application; None if it was never installed."""
        sealed = self._store.kept(self._name)
        if sealed is None:
            return None
        opened = self._sealer.open(self._name, sealed)
        if opened is None:
            return Grant(client, ended=UNREADABLE)
        grant = Grant(**orjson.loads(opened))
        return grant if grant.client == client else None

    async def keep(self, grant: Grant, clock: Clock) -> None:
        """Replace the stored grant, however long the store is unavailable."""
        sealed = self._sealer.seal(self._name, orjson.dumps(asdict(grant)).decode())
        await persist(clock, self._store.keep, self._name, sealed)
