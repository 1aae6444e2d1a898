"""The ports of what the bridge remembers for itself: processes, log-ins, sealed secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.core.types import ProcessRecord


class ProcessStore(Protocol):
    """Agent processes that a crash could leave behind."""

    async def started(self, process: ProcessRecord) -> None:
        """Remember a process."""
        ...

    async def ended(self, marker: str) -> None:
        """Forget a process that is gone."""
        ...

    async def leftovers(self) -> Sequence[ProcessRecord]:
        """List the processes that were never said to be gone."""
        ...


class LoginStore(Protocol):
    """Log-ins, each begun by a link that works once."""

    async def offer(self, link_hash: str, *, until: float) -> None:
        """Keep a link, by the hash of its secret part."""
        ...

    async def begin(self, link_hash: str, *, until: float) -> str | None:
        """Use up a link; returns the name of the log-in, None if the link is of no use."""
        ...

    def lasts(self, login: str) -> bool:
        """Tell whether a log-in was begun and has neither ended nor been revoked."""
        ...

    async def revoke(self, login: str) -> None:
        """End a log-in."""
        ...

    async def revoke_all(self) -> None:
        """End every log-in and every link."""
        ...


class SealedStore(Protocol):
    """Secrets that others gave the bridge; only whoever sealed them can read them."""

    def kept(self, name: str) -> str | None:
        """Read what is kept under a name."""
        ...

    async def keep(self, name: str, value: str) -> None:
        """Keep something under a name, in place of what was there."""
        ...

    async def take(self, name: str) -> str | None:
        """Give away what is kept under a name: of all who want it, one gets it."""
        ...
