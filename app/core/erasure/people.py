"""Forgets a person: what they said goes, and a pseudonym takes their place where rows are needed.

A person who is to be forgotten is stored before anything is removed, so that a start finishes what
a crash left of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from app.children.kept_files import KeptFiles
from app.clock import Clock
from app.core.erasure.machines import add_up, ask_others, find_away, report
from app.errors import BridgeError, NotFound, StoreUnavailable
from app.model.erasure import Erased, Left, Marks, Person, Stays, list_left
from app.retry import persist
from app.signals import ALONE, Facts, Signals, Topic
from app.store.people import PersonStore
from app.store.purging import PurgeStore
from app.tasks import Tasks

AWAY_SECONDS = 30 * 86400.0
"""How long it is kept, sealed, who is to be forgotten on machines that are away."""

logger = logging.getLogger(__name__)


class Forgetting:
    """What forgets people."""

    def __init__(
        self,
        store: PersonStore,
        rows: PurgeStore,
        files: KeptFiles,
        *,
        clock: Clock,
        stop: Callable[[int], Awaitable[None]],
        remove_said: Callable[[Person], Awaitable[None]],
        remove_here: Callable[[Person], Awaitable[None]],
        own: Path,
        compact: Callable[[], Awaitable[None]],
        signals: Signals = ALONE,
    ) -> None:
        """Forget; `stop` ends an agent's process, `compact` leaves nothing of old rows.

        `remove_said` removes the files of what agents were told on all machines, `remove_here` on
        this one; `own` is what no other machine shares.
        """
        self._store = store
        self._rows = rows
        self._files = files
        self._clock = clock
        self._stop = stop
        self._remove_said = remove_said
        self._compact = compact
        self._alone = asyncio.Lock()
        self._tasks = Tasks("forgetting")
        self._signals = signals
        self._own = own
        self._remove_here = remove_here
        signals.answer(Topic.FORGET, self._answer)
        signals.on_sweep(self._look)

    def start(self) -> None:
        """Finish in the background what a crash cut off."""
        self._tasks.start(self._resume(), name="unfinished")

    async def close(self) -> None:
        """Stop; the next start goes on."""
        await self._tasks.close()

    async def find(self, words: str) -> list[Person]:
        """List the people whose name or id has these words."""
        return list(await self._store.find(words))

    async def forget(self, service: str, who: str) -> Erased:
        """Forget a person, by the id that a service knows them by.

        Raises:
            NotFound: they have said nothing.
        """
        person = await self._store.trace(service, who)
        if person is None:
            raise NotFound("person", f"{service}:{who}")
        await persist(self._clock, self._store.keep, person)
        return await asyncio.shield(self._tasks.start(self._run(person), name=person.pseudonym))

    async def _resume(self) -> None:
        for person in await self._store.unfinished():
            if not person.away:
                await self._run(person)

    async def _run(self, person: Person) -> Erased:
        async with self._alone:
            for session in sorted(person.sessions):
                try:
                    await self._stop(session)
                except BridgeError as error:
                    logger.warning("session %d goes on: %s", session, error)
            rows = await persist(self._clock, self._store.forget, person)
            marks = Marks(person)
            rows += await persist(self._clock, self._rows.redact, marks, only_words=True)
            await self._remove_said(person)
            here = await self._clean_here(marks, shared=True)
            afar = await ask_others(self._signals, Topic.FORGET, person=person.pseudonym)
            cleaned = add_up(here, afar)
            away, unreachable = find_away(await self._rows.machines(), self._signals, afar)
            try:
                await self._compact()
            except StoreUnavailable as error:
                logger.warning("deleted text may stay in the store's log: %s", error)
            if away:
                waits = replace(person, away=away, until=self._clock.now() + AWAY_SECONDS)
                await persist(self._clock, self._store.keep, waits)
            else:
                await persist(self._clock, self._store.done, person)
            logger.info("%s is forgotten as %s", person.service, person.pseudonym)
            left = (*cleaned.left, *unreachable, Left(Stays.THEIRS))
            return Erased(rows, cleaned.files, left=left)

    async def _clean_here(self, marks: Marks, *, shared: bool) -> Erased:
        """Clean the files of this machine, and those that all share."""
        found = await asyncio.to_thread(self._files.find, marks, shared=shared)
        left = await asyncio.to_thread(self._files.clean, marks, found.held)
        return Erased(
            files=len(found.held) - len(left),
            left=list_left(left, found.unread),
        )

    async def _answer(self, facts: Facts) -> Facts:
        """Clean this machine for the member that forgets someone."""
        people = await self._store.unfinished()
        person = next(each for each in people if each.pseudonym == facts["person"])
        done = await self._clean_here(Marks(person), shared=False)
        return report(done, self._signals, self._own)

    def _look(self) -> None:
        """See whether people were forgotten while this member was away."""
        self._tasks.start_once(self._catch_up, name="catch up")

    async def _catch_up(self) -> None:
        for person in await self._store.unfinished():
            if person.away and person.until < self._clock.now():
                await persist(self._clock, self._store.done, person)
            elif self._signals.name in person.away:
                await self._remove_here(person)
                done = await self._clean_here(Marks(person), shared=False)
                await persist(self._clock, self._store.reach, person, self._signals.name)
                logger.info("%s is forgotten here too: %d files", person.pseudonym, done.files)
