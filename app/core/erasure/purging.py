"""Purges a text that leaked: out of the store, all files, repositories and what was posted.

Rows, posts and plain files are redacted. Clones, mirrors and homes that hold it are deleted: they
are made again when they are needed. A clone with work that is nowhere else is named first.

A purge is stored before anything is removed, so that a start finishes what a crash left of it; from
then on the text counts as a secret.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from app.children.kept_files import KeptFiles
from app.clock import Clock
from app.core.adapters import Adapter
from app.core.erasure.disk import Disk, KeptFolders
from app.core.erasure.machines import add_up, ask_others, find_away, report
from app.core.outbox import Outbox
from app.core.repositories.clones import Clones
from app.errors import (
    BridgeError,
    Conflict,
    PostError,
    ServiceRefused,
    StoreUnavailable,
)
from app.model.erasure import Erased, Left, Purge, Stays, Trail
from app.model.keys import SessionKey
from app.repos.search import RepositorySearch
from app.retry import persist
from app.signals import Facts, Signals, Topic
from app.store.purging import PurgeStore
from app.store.sessions import SessionStore
from app.tasks import Tasks
from app.vault import SHORTEST_SECRET, Vault
from app.vault.octets import vault_of

logger = logging.getLogger(__name__)

SENT_SECONDS = 30.0
"""How long the last posts of the agents that were stopped may take."""
PLATFORM_SECONDS = 120.0
"""How long a platform may take to read and change one conversation."""


class Purging:
    """What takes texts out of everything that the bridge keeps and has posted."""

    def __init__(
        self,
        store: PurgeStore,
        files: KeptFiles,
        repositories: RepositorySearch,
        *,
        sessions: SessionStore,
        clones: Clones,
        folders: KeptFolders,
        own: Path,
        adapters: Mapping[str, Adapter],
        outbox: Outbox,
        vault: Vault,
        clock: Clock,
        signals: Signals,
        stop: Callable[[int], Awaitable[None]],
        compact: Callable[[], Awaitable[None]],
    ) -> None:
        """Purge; `stop` ends an agent's process, `compact` leaves nothing of old rows.

        `own` is what no other machine shares.
        """
        self._store = store
        self._disk = Disk(files, repositories, clones, sessions, folders, self._end_work)
        self._sessions = sessions
        self._own = own
        self._adapters = adapters
        self._outbox = outbox
        self._vault = vault
        self._clock = clock
        self._signals = signals
        self._stop = stop
        self._compact = compact
        self._alone = asyncio.Lock()
        self._tasks = Tasks("purge")
        signals.answer(Topic.PURGE, self._answer)
        signals.on_sweep(self._look)

    def start(self) -> None:
        """Finish in the background what a crash cut off."""
        self._tasks.start(self._resume(), name="unfinished ones")

    async def close(self) -> None:
        """Stop; the next start goes on."""
        await self._tasks.close()

    async def purge(self, text: str, *, discard: bool = False) -> Erased:
        """Take a text out of everything; with `discard`, also delete work that is nowhere else.

        Raises:
            Conflict: it is too short to be told from ordinary text.
        """
        if len(text) < SHORTEST_SECRET:
            raise Conflict(f"a text to purge has at least {SHORTEST_SECRET} characters")
        known = [each for each in await self._store.list() if each.text == text]
        purge = replace(known[0], is_done=False) if known else Purge(uuid4().hex, text)
        await persist(self._clock, self._store.keep, purge)
        self._vault.register(text)
        # The caller may go away; it goes on.
        return await asyncio.shield(
            self._tasks.start(self._run(purge, discard=discard), name=purge.id)
        )

    async def _resume(self) -> None:
        for purge in await self._store.list():
            if not purge.is_done:
                done = await self._run(purge, discard=False)
                logger.warning(
                    "finished a purge that was cut off: %d rows, %d files, %d posts; %d left",
                    *(done.rows, done.files, done.posts, len(done.left)),
                )

    async def _run(self, purge: Purge, *, discard: bool) -> Erased:
        async with self._alone:
            vault = vault_of(purge.text)
            trail = await self._store.trace(vault)
            purge = await self._widen(purge, trail.sessions, trail.keys)
            await self._end_work(trail.sessions, purge.keys)
            # Rows and posts first: they are what people see, and files may take long.
            rows = await persist(self._clock, self._store.redact, vault)
            told = purge.keys
            posts, unreached = await self._clean_platforms(told, vault)
            found = await self._disk.find(vault, shared=True)
            if own := self._disk.find_sessions(found) - trail.sessions:
                purge = await self._widen(purge, own, ())
                await self._end_work(own, purge.keys - told)
                found = await self._disk.find(vault, shared=True)
            here = await self._disk.clean(vault, found, discard=discard)
            afar = await ask_others(self._signals, Topic.PURGE, id=purge.id, discard=discard)
            cleaned = add_up(here, afar)
            away, unreachable = find_away(await self._store.machines(), self._signals, afar)
            later, beyond = await self._clean_platforms(purge.keys - told, vault)
            # What was posted is told back to the bridge.
            rows += await persist(self._clock, self._store.redact, vault)
            uncompacted = await self._compact_store()
            await persist(self._clock, self._store.keep, replace(purge, is_done=True, away=away))
            left = (
                *_in_store(trail),
                *uncompacted,
                *cleaned.left,
                *unreachable,
                *unreached,
                *beyond,
                Left(Stays.COPIES),
            )
            left = tuple(dict.fromkeys(left))
            return Erased(rows, cleaned.files, posts + later, cleaned.clones, left)

    async def _widen(
        self, purge: Purge, sessions: Collection[int], keys: Collection[SessionKey]
    ) -> Purge:
        """Store that more sessions and conversations hold the text."""
        every = purge.keys.union(keys, self._keys_of(sessions))
        wider = replace(purge, keys=every, sessions=purge.sessions.union(sessions))
        await persist(self._clock, self._store.keep, wider)
        return wider

    async def _answer(self, asked: Facts) -> Facts:
        """Clean this machine for another member; the text itself is in the store, sealed."""
        (purge,) = (each for each in await self._store.list() if each.id == asked["id"])
        done = await self._clean_for_others(purge, discard=asked["discard"])
        return report(done, self._signals, self._own)

    async def _clean_for_others(self, purge: Purge, *, discard: bool) -> Erased:
        """Clean what this machine shares with no other one."""
        self._vault.register(purge.text)
        vault = vault_of(purge.text)
        found = await self._disk.find(vault, shared=False)
        if own := self._disk.find_sessions(found) - purge.sessions:
            await self._end_work(own)
            found = await self._disk.find(vault, shared=False)
        return await self._disk.clean(vault, found, discard=discard)

    def _look(self) -> None:
        """See whether there are purges from a time when this member was away."""
        self._tasks.start_once(self._catch_up, name="catch up")

    async def _catch_up(self) -> None:
        for purge in await self._store.list():
            if self._signals.name in purge.away:
                done = await self._clean_for_others(purge, discard=False)
                await persist(self._clock, self._store.reach, purge.id, self._signals.name)
                logger.warning(
                    "purged a text that went while this machine was away: %d files; %s",
                    *(done.files, [f"{each.why} {each.where}" for each in done.left]),
                )

    async def _end_work(self, sessions: Collection[int], keys: Collection[SessionKey] = ()) -> None:
        """End the agents that know the text, and let their last posts arrive."""
        for session in sorted(sessions):
            try:
                await self._stop(session)
            except BridgeError as error:
                logger.warning("session %d goes on: %s", session, error)
        for adapter in sorted({key.adapter for key in keys}):
            try:
                async with asyncio.timeout(SENT_SECONDS):
                    await self._outbox.drained(adapter)
            except TimeoutError:
                logger.warning("%s still has posts to send", adapter)

    async def _compact_store(self) -> list[Left]:
        try:
            await self._compact()
        except StoreUnavailable as error:
            return [Left(Stays.STORE, str(error))]
        return []

    async def _clean_platforms(
        self, keys: Collection[SessionKey], vault: Vault
    ) -> tuple[int, list[Left]]:
        changed, left = 0, list[Left]()
        for key in sorted(keys, key=str):
            adapter = self._adapters.get(key.adapter)
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
        session = self._sessions.find(key)
        return session.link if session is not None and session.link else str(key)

    def _keys_of(self, sessions: Collection[int]) -> Iterator[SessionKey]:
        for each in sessions:
            if (session := self._sessions.session(each)) is not None:
                yield session.key


def _in_store(trail: Trail) -> Iterator[Left]:
    yield from (Left(Stays.ADDRESS, each) for each in trail.fixed)
    yield from (Left(Stays.IN_USE, each) for each in trail.agents)
