"""Saves the states of clones, and rebuilds those that this machine's disk does not have.

A state is stored under a new name before its row says so, and older ones are removed after that: a
machine that has lost its session can store one more, but never replaces what counts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.clock import Clock
from app.core.repositories.ports import Checkouts
from app.errors import BridgeError
from app.model.workspaces import Checkout, Clone, Rebuilt
from app.retry import persist
from app.store.checkouts import CheckoutStore

logger = logging.getLogger(__name__)

_NOWHERE: Final = "-"
"""The machine of a clone that is being rebuilt: a crash leaves none that could be used."""


@dataclass(frozen=True, slots=True)
class Saving:
    """The saved states of clones, seen from one machine."""

    checkouts: Checkouts
    records: CheckoutStore
    clock: Clock
    machine: str
    """Names the disk that this machine's clones are on."""

    def is_here(self, record: Checkout, clone: Clone) -> bool:
        """Tell whether this machine's disk holds a clone, usable or not."""
        return self.is_ours(record) and clone.folder.is_dir()

    def is_ours(self, record: Checkout) -> bool:
        """Tell whether a clone is, or was, on this machine's disk."""
        return record.machine in {"", self.machine}

    async def save(self, record: Checkout, clone: Clone) -> None:
        """Save the state of a clone; a failure is logged, and the state before stays."""
        if not self.is_ours(record):
            return  # its session works on another machine now
        known = record.saved
        try:
            name = await self.checkouts.save(clone, known=known, bases=(record.commit, record.sent))
            if name != known:
                await self.records.saved(record.session, record.number, name, self.machine)
                await self.checkouts.forget_states(clone, but=name)
        except (BridgeError, OSError) as error:
            logger.warning("the state of %s is not saved: %s", clone.session, error)

    async def rebuild(
        self,
        record: Checkout,
        clone: Clone,
        *,
        on_sent: Callable[[str], Awaitable[None]],
        ask: Callable[[str, Sequence[str]], Awaitable[bool]],
    ) -> Rebuilt | None:
        """Make a clone from its saved state on this machine; None if that is gone or broken.

        Raises:
            RepositoryError: it cannot be made now.
        """
        await persist(self.clock, self.records.placed, record.session, record.number, _NOWHERE)
        return await self.checkouts.rebuild(
            clone, record.saved, start=record.commit, on_sent=on_sent, ask=ask
        )

    async def settle(self, record: Checkout) -> None:
        """Record that a rebuilt clone can be used."""
        await persist(self.clock, self.records.placed, record.session, record.number, self.machine)
