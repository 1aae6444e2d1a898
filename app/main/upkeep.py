"""What the bridge sees to beside its work: what its last run left, and what grows old."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from app.children.leftovers import ProcessIdentity, kill_leftovers
from app.core.clock import persist
from app.core.repo_provider import RepoProvider
from app.main.foundation import Foundation, bridge_id
from app.server.pages import uploads
from app.store.retention import DAY_SECONDS, forget, named_files, unread_deliveries

logger = logging.getLogger(__name__)

RETENTION_SECONDS = 6 * 3600.0
"""How often old rows are looked for."""


class Upkeep:
    """What is seen to beside the work."""

    def __init__(self, base: Foundation, workspaces: RepoProvider, files: Path) -> None:
        """Look after a bridge, its workspaces, and the files that people attached."""
        self._base = base
        self._workspaces = workspaces
        self._files = files

    async def end_leftovers(self) -> None:
        """End the processes that an earlier run left behind."""
        stores = self._base.stores
        known = await stores.processes.leftovers()
        identities = [ProcessIdentity(each.group, each.started, each.marker) for each in known]
        sweep = await asyncio.to_thread(
            kill_leftovers, identities, bridge=bridge_id(self._base.configuration)
        )
        if sweep.killed:
            logger.warning("ended what the last run left behind: %s", ", ".join(sweep.killed))
        for record in known:
            await persist(self._base.clock, stores.processes.ended, record.marker)

    async def forget(self) -> None:
        """Throw away what is older than history is kept, now and every few hours."""
        while True:
            try:
                await self._forget_once()
            except Exception:
                logger.exception("not all that is old could be thrown away")
            await self._base.clock.sleep(RETENTION_SECONDS)

    async def _forget_once(self) -> None:
        base = self._base
        now, days = base.clock.now(), base.configuration.limits.retention_days
        before = now - days * DAY_SECONDS
        gone = await persist(base.clock, forget, base.database, now=now, days=days)
        files = await self._forget_files(before=before)
        logger.debug("forgot %d old rows and %d attachments", gone, files)
        for words in await self._workspaces.reap(before=before):
            logger.warning("%s", words)

    async def _forget_files(self, *, before: float) -> int:
        """Remove files that were attached to nothing: a crash may come before their message."""
        database = self._base.database
        named, unread = await named_files(database), await unread_deliveries(database)
        return await asyncio.to_thread(uploads.forget, self._files, named, unread, before=before)
