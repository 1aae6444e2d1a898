"""Ports for the bridge's own records: processes, log-ins, sealed secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.model.types import ProcessRecord


class ProcessStore(Protocol):
    """Agent processes that a crash could leave behind."""

    async def started(self, process: ProcessRecord) -> None:
        """Remember a process."""
        ...

    async def ended(self, marker: str) -> None:
        """Forget a process that is gone."""
        ...

    async def leftovers(self) -> Sequence[ProcessRecord]:
        """List the processes whose end was never recorded."""
        ...


class LoginStore(Protocol):
    """Log-ins, each begun by a link that works once."""

    async def offer(self, link_hash: str, *, until: float) -> None:
        """Store a link, by the hash of its secret part."""
        ...

    def is_open(self, link_hash: str) -> bool:
        """Tell whether a link can be used, without using it."""
        ...

    async def begin(self, link_hash: str, *, until: float) -> str | None:
        """Use up a link; returns the name of the log-in, None if the link is not valid."""
        ...

    def lasts(self, login: str, *, seconds: float = 0.0) -> bool:
        """Tell whether a log-in was begun and neither ends within `seconds` nor was revoked."""
        ...

    async def revoke(self, login: str) -> None:
        """End a log-in."""
        ...

    async def revoke_all(self) -> None:
        """End every log-in and every link."""
        ...


class Sealer(Protocol):
    """Seals secrets for storage."""

    def seal(self, name: str, secret: str) -> str:
        """Seal a secret for storage under a name."""
        ...

    def open(self, name: str, sealed: str) -> str | None:
        """Open a sealed secret; None if it was sealed with another key or under another name."""
        ...


class SealedStore(Protocol):
    """Secrets that others gave the bridge; only the one who sealed them can read them."""

    def kept(self, name: str) -> str | None:
        """Read the value under a name."""
        ...

    async def keep(self, name: str, value: str) -> None:
        """Store a value under a name, replacing the old one."""
        ...

    async def take(self, name: str) -> str | None:
        """Take the value under a name out: of several callers, one gets it."""
        ...
