"""Erases on every machine of an installation: what purging and forgetting have in common.

What is to go is stored before anything is removed, so that a start finishes what a crash left of
it. A machine that is away cleans its disk when its member is back: which ones are, is stored too.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Collection
from socket import gethostname
from typing import Any, ClassVar

from app.children.kept_files import KeptFiles
from app.children.limits import RESERVE
from app.config.process import SECRETS
from app.core.runtime import Runtime
from app.errors import BridgeError
from app.features.erasing.model import Erased, Left, Stays
from app.features.erasing.store.purges import PurgeStore
from app.signals import Facts, Topic
from app.store.database import FILE_NAME as DATABASE
from app.tasks import Tasks

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
