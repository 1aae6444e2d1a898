"""Cleans up: processes that the last run left, and history older than its retention."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from app.children.proc_table import ProcessIdentity, kill_leftovers
from app.core.repositories.folders import UnusedWorkspaces
from app.features.part import Part
from app.main.resources import Resources
from app.retry import persist
from app.server.page import uploads
from app.store.upkeep import DAY_SECONDS, forget, named_files, unread_deliveries

logger = logging.getLogger(__name__)

RETENTION_SECONDS = 6 * 3600.0
"""How often old rows are looked for."""


class Maintenance:
    """The clean-up tasks of one bridge."""

    def __init__(
        self,
        base: Resources,
        unused: UnusedWorkspaces,
        files: Path,
        features: Sequence[Part],
    ) -> None:
        """Maintain a bridge, its workspaces, the files that people attached, and features."""
        self._features = features
        self._base = base
        self._unused = unused
        self._files = files

    async def end_leftovers(self, *, is_shared: bool = False) -> None:
        """Kill the processes that an earlier run left; others may share the store."""
        stores = self._base.stores
        known = await stores.processes.leftovers()
        if is_shared:
            own = f"{self._base.configuration.bridge_id}."
            known = [each for each in known if each.marker.startswith(own)]
        identities = [ProcessIdentity(each.group, each.started, each.marker) for each in known]
        sweep = await asyncio.to_thread(
            kill_leftovers, identities, bridge=self._base.configuration.bridge_id
        )
        if sweep.killed:
            logger.warning("killed processes of the last run: %s", ", ".join(sweep.killed))
        for record in known:
            await persist(self._base.clock, stores.processes.ended, record.marker)

    async def forget(self) -> None:
        """Delete what is older than the retention period, for all members of an installation."""
        await self._repeat(self._forget_once)

    async def reap(self) -> None:
        """Remove what was not used for long from the disk of this machine."""
        await self._repeat(self._reap_once)

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something now and every few hours."""
        while True:
            try:
                await work()
            except Exception:
                logger.exception("retention failed; some old data is kept")
            await self._base.clock.sleep(RETENTION_SECONDS)

    async def _forget_once(self) -> None:
        base, settings = self._base, self._base.configuration.settings
        now, usual = base.clock.now(), settings.retention_days
        gone = await persist(
            base.clock,
            forget,
            base.database,
            now=now,
            days=settings.retention_events_days or usual,
            post_days=settings.retention_posts_days or usual,
        )
        made = now - _seconds(settings.retention_files_days or usual)
        files = await self._forget_files(before=made)
        logger.debug("deleted %d old rows and %d attachments", gone, files)
        for part in self._features:
            await part.expire()

    async def _reap_once(self) -> None:
        settings = self._base.configuration.settings
        days = settings.retention_work_days or settings.retention_days
        for words in await self._unused.reap(before=self._base.clock.now() - _seconds(days)):
            logger.warning("%s", words)

    async def _forget_files(self, *, before: float) -> int:
        """Remove files without a message: a crash may have come before it."""
        database = self._base.database
        named, unread = await named_files(database), await unread_deliveries(database)
        return await asyncio.to_thread(uploads.forget, self._files, named, unread, before=before)


def _seconds(days: float) -> float:
    return days * DAY_SECONDS
