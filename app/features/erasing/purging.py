"""Purges a text that leaked: out of the store, all files, repositories and what was posted.

Rows, posts and plain files are redacted. Clones, mirrors and homes that hold it are deleted: they
are made again when they are needed. A clone with work that is nowhere else is named first.

From the moment that a purge is stored, its text counts as a secret.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator
from dataclasses import replace
from uuid import uuid4

from typing_extensions import override

from app.core.runtime import Runtime
from app.errors import Conflict, PostError, ServiceRefused, StoreUnavailable
from app.features.erasing.disk import Disk
from app.features.erasing.eraser import Eraser
from app.features.erasing.model import Erased, Left, Purge, Stays
from app.features.erasing.store.purges import PurgeStore
from app.model.keys import SessionKey
from app.retry import persist
from app.signals import Facts, Topic
from app.vault import SHORTEST_SECRET, Vault, vault_of

logger = logging.getLogger(__name__)

SENT_SECONDS = 30.0
"""How long the last posts of the agents that were stopped may take."""
PLATFORM_SECONDS = 120.0
"""How long a platform may take to read and change one conversation."""


class Purging(Eraser):
    """What takes texts out of everything that the bridge keeps and has posted."""

    topic = Topic.PURGE

    def __init__(self, runtime: Runtime, rows: PurgeStore) -> None:
        super().__init__(runtime, rows)
        self._disk = Disk(runtime, self._files, self._stop)

    async def purge(self, text: str, *, discard: bool = False) -> Erased:
        """Take a text out of everything; with `discard`, also delete work that is nowhere else.

        Raises:
            Conflict: it is too short to be told from ordinary text.
        """
        if len(text) < SHORTEST_SECRET:
            raise Conflict(f"a text to purge has at least {SHORTEST_SECRET} characters")
        known = [each for each in await self._rows.list() if each.text == text]
        purge = replace(known[0], is_done=False) if known else Purge(uuid4().hex, text)
        await persist(self._clock, self._rows.keep, purge)
        self._runtime.vault.register(text)
        # The caller may go away; it goes on.
        return await asyncio.shield(
            self._tasks.start(self._run(purge, discard=discard), name=purge.id)
        )

    @override
    async def _resume(self) -> None:
        for purge in await self._rows.list():
            if not purge.is_done:
                done = await self._run(purge, discard=False)
                logger.warning(
                    "finished a purge that was cut off: %d rows, %d files, %d posts; %d left",
                    *(done.rows, done.files, done.posts, len(done.left)),
                )

    async def _run(self, purge: Purge, *, discard: bool) -> Erased:
        async with self._alone:
            vault = vault_of(purge.text)
            trail = await self._rows.trace(vault)
            purge = await self._widen(purge, trail.sessions, trail.keys)
            await self._end_work(trail.sessions, purge.keys)
            # Rows and posts first: they are what people see, and files may take long.
            rows = await persist(self._clock, self._rows.redact, vault)
            told = purge.keys
            posts, unreached = await self._clean_platforms(told, vault)
            found = await self._disk.find(vault, shared=True)
            if own := self._disk.find_sessions(found) - trail.sessions:
                purge = await self._widen(purge, own, ())
                await self._end_work(own, purge.keys - told)
                found = await self._disk.find(vault, shared=True)
            here = await self._disk.clean(vault, found, discard=discard)
            cleaned, away = await self._clean_afar(here, id=purge.id, discard=discard)
            later, beyond = await self._clean_platforms(purge.keys - told, vault)
            # What was posted is told back to the bridge.
            rows += await persist(self._clock, self._rows.redact, vault)
            left = [
                *(Left(Stays.ADDRESS, each) for each in trail.fixed),
                *(Left(Stays.IN_USE, each) for each in trail.agents),
            ]
            try:
                await self._runtime.database.compact()
            except StoreUnavailable as error:
                left.append(Left(Stays.STORE, str(error)))
            await persist(self._clock, self._rows.keep, replace(purge, is_done=True, away=away))
            left += [*cleaned.left, *unreached, *beyond, Left(Stays.COPIES)]
            every = tuple(dict.fromkeys(left))
            return Erased(rows, cleaned.files, posts + later, cleaned.clones, every)

    async def _widen(
        self, purge: Purge, sessions: Collection[int], keys: Collection[SessionKey]
    ) -> Purge:
        """Store that more sessions and conversations hold the text."""
        every = purge.keys.union(keys, self._keys_of(sessions))
        wider = replace(purge, keys=every, sessions=purge.sessions.union(sessions))
        await persist(self._clock, self._rows.keep, wider)
        return wider

    @override
    async def _clean_for(self, asked: Facts) -> Erased:
        (purge,) = (each for each in await self._rows.list() if each.id == asked["id"])
        return await self._clean_for_others(purge, discard=asked["discard"])

    async def _clean_for_others(self, purge: Purge, *, discard: bool) -> Erased:
        """Clean what this machine shares with no other one."""
        self._runtime.vault.register(purge.text)
        vault = vault_of(purge.text)
        found = await self._disk.find(vault, shared=False)
        if own := self._disk.find_sessions(found) - purge.sessions:
            await self._stop(own)
            found = await self._disk.find(vault, shared=False)
        return await self._disk.clean(vault, found, discard=discard)

    @override
    async def _catch_up(self) -> None:
        for purge in await self._rows.list():
            if self._signals.name in purge.away:
                done = await self._clean_for_others(purge, discard=False)
                await persist(self._clock, self._rows.reach, purge.id, self._signals.name)
                logger.warning(
                    "purged a text that went while this machine was away: %d files; %s",
                    *(done.files, [f"{each.why} {each.where}" for each in done.left]),
                )

    async def _end_work(self, sessions: Collection[int], keys: Collection[SessionKey]) -> None:
        """End the agents that know the text, and let their last posts arrive."""
        await self._stop(sessions)
        for adapter in sorted({key.adapter for key in keys}):
            try:
                async with asyncio.timeout(SENT_SECONDS):
                    await self._runtime.outbox.drained(adapter)
            except TimeoutError:
                logger.warning("%s still has posts to send", adapter)

    async def _clean_platforms(
        self, keys: Collection[SessionKey], vault: Vault
    ) -> tuple[int, list[Left]]:
        changed, left = 0, list[Left]()
        for key in sorted(keys, key=str):
            adapter = self._runtime.adapters.get(key.adapter)
            if adapter is None:
                left.append(Left(Stays.UNREACHED, self._locate(key)))
                continue
            try:
                async with asyncio.timeout(PLATFORM_SECONDS):
                    cleaned = await adapter.purge(key, vault)
            except (PostError, ServiceRefused, TimeoutError) as error:
                logger.warning("cannot purge what was posted in %s: %s", key, error)
                left.append(Left(Stays.UNREACHED, self._locate(key)))
            else:
                changed += cleaned.changed
                left += [Left(Stays.PLATFORM, each) for each in cleaned.left]
        return changed, list(dict.fromkeys(left))

    def _locate(self, key: SessionKey) -> str:
        """Return the address at which people find a conversation, else its name."""
        session = self._runtime.stores.sessions.find(key)
        return session.link if session is not None and session.link else str(key)

    def _keys_of(self, sessions: Collection[int]) -> Iterator[SessionKey]:
        for each in sessions:
            if (session := self._runtime.stores.sessions.session(each)) is not None:
                yield session.key
