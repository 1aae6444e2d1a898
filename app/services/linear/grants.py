"""What Linear granted when an admin installed an agent's application, kept sealed.

Linear gives a new refresh token with every renewal, so what it gave last is committed before it is
used: whoever loses it must be installed again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol

import orjson

from app.core.clock import persist
from app.core.ports import Clock
from app.core.stores.housekeeping import SealedStore

UNREADABLE = "what was kept of the installation cannot be read: BRIDGE_SECRET_KEY is another one"


class Sealer(Protocol):
    """Whoever makes of secrets what may be kept."""

    def seal(self, name: str, secret: str) -> str:
        """Make of a secret what may be kept under a name."""
        ...

    def open(self, name: str, sealed: str) -> str | None:
        """Give a secret back; None if it was sealed with another key or under another name."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """One installation: whose it is, and the tokens of now."""

    client: str
    """The OAuth application that was installed."""
    access: str = ""
    refresh: str = ""
    until: float = 0.0
    """When the access token ends, in seconds since 1970."""
    scope: str = ""
    ended: str = ""
    """Why it is of no use any more; empty while it is."""


class Grants:
    """Where one agent's grant is kept."""

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
        """Keep a grant in place of the one before, however long the store is unavailable."""
        sealed = self._sealer.seal(self._name, orjson.dumps(asdict(grant)).decode())
        await persist(clock, self._store.keep, self._name, sealed)
