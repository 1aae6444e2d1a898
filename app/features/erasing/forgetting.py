"""Forgets a person: what they said goes; where rows are needed, a pseudonym takes their place."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from typing_extensions import override

from app.core.runtime import Runtime
from app.errors import NotFound, StoreUnavailable
from app.features.erasing.eraser import Eraser
from app.features.erasing.model import Erased, Left, Marks, Person, Stays, list_left
from app.features.erasing.store.people import PersonStore
from app.features.erasing.store.purges import PurgeStore
from app.retry import persist
from app.signals import Facts, Topic

AWAY_SECONDS = 30 * 86400.0
"""How long it is kept, sealed, who is to be forgotten on machines that are away."""

logger = logging.getLogger(__name__)


class Forgetting(Eraser):
    """What forgets people."""

    topic = Topic.FORGET
    # What is written in repositories has people's names too.
    unread = ("workspaces", "mirrors", "gates")

    def __init__(self, runtime: Runtime, rows: PurgeStore, people: PersonStore) -> None:
        super().__init__(runtime, rows)
        self._store = people

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

    @override
    async def _resume(self) -> None:
        for person in await self._store.unfinished():
            if not person.away:
                await self._run(person)

    async def _run(self, person: Person) -> Erased:
        async with self._alone:
            await self._stop(person.sessions)
            rows = await persist(self._clock, self._store.forget, person)
            marks = Marks(person)
            rows += await persist(self._clock, self._rows.redact, marks, only_words=True)
            sessions, conversations = sorted(person.sessions), sorted(person.conversations)
            await self._runtime.reach.remove(sessions, conversations, said=True)
            await self._runtime.reach.remove_uploads(person.uploads)
            here = await self._clean_here(marks, shared=True)
            cleaned, away = await self._clean_afar(here, person=person.pseudonym)
            try:
                await self._runtime.database.compact()
            except StoreUnavailable as error:
                logger.warning("deleted text may stay in the store's log: %s", error)
            if away:
                waits = replace(person, away=away, until=self._clock.now() + AWAY_SECONDS)
                await persist(self._clock, self._store.keep, waits)
            else:
                await persist(self._clock, self._store.done, person)
            logger.info("%s is forgotten as %s", person.service, person.pseudonym)
            return Erased(rows, cleaned.files, left=(*cleaned.left, Left(Stays.THEIRS)))

    async def _clean_here(self, marks: Marks, *, shared: bool) -> Erased:
        """Clean the files of this machine, and those that all share."""
        found = await asyncio.to_thread(self._files.find, marks, shared=shared)
        left = await asyncio.to_thread(self._files.clean, marks, found.held)
        files = len(found.held) - len(left)
        return Erased(files=files, left=list_left(left, found.unread))

    @override
    async def _clean_for(self, asked: Facts) -> Erased:
        people = await self._store.unfinished()
        person = next(each for each in people if each.pseudonym == asked["person"])
        return await self._clean_here(Marks(person), shared=False)

    @override
    async def _catch_up(self) -> None:
        for person in await self._store.unfinished():
            if person.away and person.until < self._clock.now():
                await persist(self._clock, self._store.done, person)
            elif self._signals.name in person.away:
                sessions, conversations = sorted(person.sessions), sorted(person.conversations)
                await self._runtime.reach.remove_here(sessions, conversations, said=True)
                done = await self._clean_here(Marks(person), shared=False)
                await persist(self._clock, self._store.reach, person, self._signals.name)
                logger.info("%s is forgotten here too: %d files", person.pseudonym, done.files)
