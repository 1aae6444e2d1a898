"""Applies a repository's new name to sessions, places, clones and posts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from app.clock import Clock
from app.core.adapters import Adapter
from app.core.repositories.directory import Directory
from app.core.repositories.ports import Checkouts
from app.model.inbound import Naming, Renamed
from app.retry import persist
from app.store.names import NameStore

logger = logging.getLogger(__name__)


class Renames:
    """Follows changes of repository names."""

    def __init__(
        self,
        names: NameStore,
        checkouts: Checkouts,
        *,
        adapters: Iterable[Adapter],
        directory: Directory,
        clock: Clock,
    ) -> None:
        self._names = names
        self._checkouts = checkouts
        self._adapters = list(adapters)
        self._directory = directory
        self._clock = clock
        self._order = asyncio.Lock()

    async def follow(self, naming: Naming) -> None:
        """Record a repository's name; everything with the old name gets the new one."""
        if self._names.of(naming.host, naming.number) == naming.name:
            return
        async with self._order:
            # Mirrors first: after a crash before the commit, all of it is repeated.
            for renamed in self._names.plan(naming):
                logger.info("%s is now called %s", renamed.old, renamed.new)
                await self._move_clones(renamed)
                for adapter in self._adapters:
                    adapter.renamed(renamed.old)
            await persist(self._clock, self._names.follow, naming)

    async def _move_clones(self, renamed: Renamed) -> None:
        """Keep what is on disk; if that fails, the next turn makes another clone and says so."""
        old, new = map(self._directory.repository, (renamed.old, renamed.new))
        try:
            await self._checkouts.rename(old, new)
        except OSError as error:
            logger.warning("could not keep the mirror of %s: %s", renamed.new, error)
