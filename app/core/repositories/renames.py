"""Lets sessions, places, clones and posts follow a repository that gets another name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from app.core.adapters import Adapter, NamingAdapter
from app.core.clock import persist
from app.core.inbound import Naming, Renamed
from app.core.ports import Checkouts, Clock
from app.core.repositories.directory import Directory
from app.core.stores.repositories import NameStore

logger = logging.getLogger(__name__)


class Renames:
    """What follows from names that change."""

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
        self._adapters = [each for each in adapters if isinstance(each, NamingAdapter)]
        self._directory = directory
        self._clock = clock
        self._order = asyncio.Lock()

    async def follow(self, naming: Naming) -> None:
        """Take note of a repository's name; whatever has the old one gets the new one."""
        if self._names.of(naming.host, naming.number) == naming.name:
            return
        async with self._order:
            # Mirrors first: a crash before the commit lets all of it be done again.
            for renamed in self._names.plan(naming):
                logger.info("%s is called %s from now on", renamed.old, renamed.new)
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
            logger.warning("the mirror of %s could not be kept: %s", renamed.new, error)
