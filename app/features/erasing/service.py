"""Purges a text that leaked and forgets a person, on every machine of an installation.

What is to go is stored before anything is removed, so that a start finishes what a crash left of
it. A machine that is away cleans its disk when its member is back: which ones are, is stored too.

A purge redacts rows, posts and plain files. Clones, mirrors and homes that hold its text are
deleted: they are made again when they are needed. A clone with work that is nowhere else is named
first. From the moment that a purge is stored, its text counts as a secret. Of a person, what they
said goes; where rows are needed, a pseudonym takes their place.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import replace
from socket import gethostname
from typing import Any, ClassVar
from uuid import uuid4

from typing_extensions import override

from app.children.kept_files import KeptFiles
from app.children.limits import RESERVE
from app.config.process import SECRETS
from app.core.runtime import Runtime
from app.errors import BridgeError, Conflict, NotFound, PostError, ServiceRefused, StoreUnavailable
from app.features.erasing.disk import Disk
from app.features.erasing.model import Erased, Left, Marks, Person, Purge, Stays, list_left
from app.features.erasing.store.people import PersonStore
from app.features.erasing.store.purges import PurgeStore
from app.features.part import Part
from app.model.keys import SessionKey
from app.retry import persist
from app.signals import Facts, Topic
from app.store.database import FILE_NAME as DATABASE
from app.tasks import Tasks
from app.vault import SHORTEST_SECRET, Vault, vault_of

SECONDS = 1800.0
"""How long other machines may take to read all their files."""

logger = logging.getLogger(__name__)


class Eraser(ABC):
    """What erases one kind of thing, one after another."""

    topic: ClassVar[Topic]
    """What it asks the other members."""
    unread: ClassVar[tuple[str, ...]] = ()
    """Folders whose files stay as they are."""

    def __init__(self, runtime: Runtime, rows: PurgeStore) -> None:
        self._runtime = runtime
        self._clock = runtime.clock
        self._signals = signals = runtime.signals
        self._rows = rows
        self._own, shared = runtime.configuration.data_dir, runtime.configuration.shared_dir
        self._files = KeptFiles(self._own, shared, but=(DATABASE, SECRETS, RESERVE, *self.unread))
        self._alone = asyncio.Lock()
        self._tasks = Tasks(self.topic)
        signals.answer(self.topic, self._answer)
        signals.on_sweep(lambda: self._tasks.start_once(self._catch_up, name="catch up"))

    def start(self) -> None:
        """Finish in the background what a crash cut off."""
        self._tasks.start(self._resume(), name="unfinished")

    async def close(self) -> None:
        """Stop; the next start goes on."""
        await self._tasks.close()

    @abstractmethod
    async def _resume(self) -> None:
        """Finish what a crash cut off."""

    @abstractmethod
    async def _catch_up(self) -> None:
        """Clean this machine of what was erased while its member was away."""

    @abstractmethod
    async def _clean_for(self, asked: Facts) -> Erased:
        """Clean this machine, as another member asks."""

    async def _stop(self, sessions: Collection[int]) -> None:
        """End the agents of sessions."""
        for session in sorted(sessions):
            try:
                await self._runtime.end_work(session)
            except BridgeError as error:
                logger.warning("session %d goes on: %s", session, error)

    async def _clean_afar(self, here: Erased, **which: Any) -> tuple[Erased, frozenset[str]]:
        """Have every other member clean its machine; what is to go they read from the store.

        Returns what all did, where what they share is named once, and the members that are away.
        """
        try:
            answers = await self._signals.ask(self.topic, seconds=SECONDS, **which)
        except TimeoutError:
            answers = ()  # those that did not hear of it do it later
        machines = await self._rows.machines()
        away = machines.keys() - {self._signals.name, *(each["member"] for each in answers)}
        left = [*here.left, *(Left(Stays(why), at) for each in answers for why, at in each["left"])]
        left += [Left(Stays.AWAY, f"{machines[each]} ({each})") for each in sorted(away)]
        done = Erased(
            files=here.files + sum(each["files"] for each in answers),
            clones=here.clones + sum(each["clones"] for each in answers),
            left=tuple(dict.fromkeys(left)),
        )
        return done, frozenset(away)

    async def _answer(self, asked: Facts) -> Facts:
        """Clean this machine for the member that asks, and tell it what was done."""
        done, host, own = await self._clean_for(asked), gethostname(), f"{self._own}/"
        left = [
            [each.why, f"{host}: {each.where}" if each.where.startswith(own) else each.where]
            for each in done.left
        ]
        counts = {"files": done.files, "clones": done.clones}
        return {**counts, "left": left, "member": self._signals.name}


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


AWAY_SECONDS = 30 * 86400.0
"""How long it is kept, sealed, who is to be forgotten on machines that are away."""


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


class Erasing(Part):
    """What one bridge erases on demand."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        purges = runtime.stores.open(PurgeStore)
        runtime.vault.register(*purges.texts())
        self.purging = Purging(runtime, purges)
        self.forgetting = Forgetting(runtime, purges, runtime.stores.open(PersonStore))

    @override
    def start(self) -> None:
        self.purging.start()
        self.forgetting.start()

    @override
    async def close(self) -> None:
        await self.purging.close()
        await self.forgetting.close()
