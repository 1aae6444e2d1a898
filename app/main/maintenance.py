"""Cleans up: processes that the last run left, and history older than its retention."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from app.children.leftovers import ProcessIdentity, kill_leftovers
from app.core.repo_provider import RepoProvider
from app.core.retry import persist
from app.main.resources import Resources, bridge_id
from app.server.page import uploads
from app.store.retention import DAY_SECONDS, forget, named_files, unread_deliveries

logger = logging.getLogger(__name__)

RETENTION_SECONDS = 6 * 3600.0
"""How often old rows are looked for."""


class Maintenance:
    """The clean-up tasks of one bridge."""

    def __init__(self, base: Resources, workspaces: RepoProvider, files: Path) -> None:
        """Maintain a bridge, its workspaces, and the files that people attached."""
        self._base = base
        self._workspaces = workspaces
        self._files = files

    async def end_leftovers(self, *, is_shared: bool = False) -> None:
        """Kill the processes that an earlier run left; others may share the store."""
        stores = self._base.stores
        known = await stores.processes.leftovers()
        if is_shared:
            own = f"{bridge_id(self._base.configuration)}."
            known = [each for each in known if each.marker.startswith(own)]
        identities = [ProcessIdentity(each.group, each.started, each.marker) for each in known]
        sweep = await asyncio.to_thread(
            kill_leftovers, identities, bridge=bridge_id(self._base.configuration)
        )
        if sweep.killed:
            logger.warning("killed processes of the last run: %s", ", ".join(sweep.killed))
        for record in known:
            await persist(self._base.clock, stores.processes.ended, record.marker)

    async def forget(self) -> None:
        """Delete what is older than the retention period, now and every few hours."""
        while True:
            try:
                await self._forget_once()
            except Exception:
                logger.exception("retention failed; some old data is kept")
            await self._base.clock.sleep(RETENTION_SECONDS)

    async def _forget_once(self) -> None:
        base = self._base
        now, days = base.clock.now(), base.configuration.limits.retention_days
        before = now - days * DAY_SECONDS
        gone = await persist(base.clock, forget, base.database, now=now, days=days)
        files = await self._forget_files(before=before)
        logger.debug("deleted %d old rows and %d attachments", gone, files)
        for words in await self._workspaces.reap(before=before):
            logger.warning("%s", words)

    async def _forget_files(self, *, before: float) -> int:
        """Remove files without a message: a crash may have come before it."""
        database = self._base.database
        named, unread = await named_files(database), await unread_deliveries(database)
        return await asyncio.to_thread(uploads.forget, self._files, named, unread, before=before)
