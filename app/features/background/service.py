"""Keeps track of what agents leave running between turns, and asks people when it takes long.

A process that has such work is neither parked nor ended for others. What is gone with a process is
told to people at once, and to the agent with its next prompt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from app.core.hooks import PromptParts
from app.core.runtime import Runtime
from app.features.background import wording
from app.features.background.store import SessionWork, WorkStore
from app.features.part import Part
from app.model.background import Work
from app.model.keys import PlaceKey
from app.model.types import Message, Session, Turn
from app.model.updates import AskOption, AskRequest
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

KEEP: Final = AskOption("keep", wording.KEEP, "allow_once")
END: Final = AskOption("end", wording.END, "reject_once")
PATIENCE: Final = 0.25
"""The part of BACKGROUND_MINUTES that people have to answer."""


class BackgroundWork(Part):
    """The work in the background of one bridge."""

    ask_kind = "background"

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._store = runtime.stores.open(WorkStore)
        self._tasks = Tasks("background")
        self._seconds = runtime.configuration.settings.background_minutes * 60
        self._watches: dict[int, asyncio.Task[None]] = {}
        self._changed: dict[int, asyncio.Task[None]] = {}
        self._answered = asyncio.Event()
        self._closing = False
        self._known: set[int] = set()
        """The sessions that have work."""
        runtime.live.on_work = self._note

    @override
    async def recover(self) -> None:
        """Tell people what no longer runs since the bridge ended."""
        posts = await persist(self.runtime.clock, self._store.lose_unserved)
        self.runtime.outbox.send(*posts)

    @override
    async def close(self) -> None:
        """End the watches; what runs is told as gone at the next start."""
        self._closing = True
        await self._tasks.close()

    @override
    def on_answered(self) -> None:
        """Look for answers."""
        self._answered.set()

    @override
    async def stop(self, place: PlaceKey) -> bool:
        """End what runs in the background of a place."""
        own = [each.id for each in self.runtime.stores.sessions.in_place(place)]
        ended = [each for each in own if self.runtime.live.work(each)]
        for session_id in ended:
            await self.end(session_id)
        return bool(ended)

    @override
    async def prompt_parts(
        self, session: Session, turn: Turn, messages: Sequence[Message], *, begins: bool
    ) -> PromptParts:
        """Tell an agent what it had running and no longer runs."""
        lost = await self._store.of_session(session.id, lost=True)
        if not lost:
            return PromptParts()

        async def forget() -> None:
            await persist(self.runtime.clock, self._store.forget, session.id)

        note = wording.LOST.format(what=wording.name(lost))
        return PromptParts(notes=(note,), on_sent=forget)

    async def all(self) -> Sequence[SessionWork]:
        """List what goes on, the oldest first."""
        return await self._store.all()

    async def end(self, session_id: int) -> bool:
        """End what a session has running, with its process; False if there is nothing."""
        if not self.runtime.live.work(session_id):
            return False
        await self.runtime.live.end(session_id)
        return True

    def _note(self, session_id: int, work: tuple[Work, ...] | None) -> None:
        """Take note of what goes on in a session; None: its process is gone."""
        if self._closing or (work is None and session_id not in self._known):
            return
        if work:
            self._known.add(session_id)
        else:
            self._known.discard(session_id)
        before = self._changed.get(session_id)
        self._changed[session_id] = self._tasks.start(
            self._keep(session_id, work, before), name=f"work of session {session_id}"
        )
        if work and session_id not in self._watches:
            self._watches[session_id] = self._tasks.start(
                self._watch(session_id), name=f"bound of session {session_id}"
            )

    async def _keep(
        self,
        session_id: int,
        work: tuple[Work, ...] | None,
        before: asyncio.Task[None] | None,
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        clock = self.runtime.clock
        if work is None:
            posts = await persist(clock, self._store.lose, session_id, wanted=True)
            self.runtime.outbox.send(*posts)
        else:
            redact = self.runtime.vault.redact
            shown = [
                Work(each.id, each.kind, redact(each.about), each.turn, each.began_at)
                for each in work
            ]
            await persist(clock, self._store.keep, session_id, shown)
        self.runtime.feed.notify(session_id)

    async def _watch(self, session_id: int) -> None:
        """Ask people about work that takes long, and end it unless they let it go on."""
        clock, live = self.runtime.clock, self.runtime.live
        try:
            while live.work(session_id):
                await clock.sleep(self._seconds)
                work = live.work(session_id)
                if work and not await self._may_go_on(session_id, work):
                    await self.end(session_id)
        finally:
            del self._watches[session_id]

    async def _may_go_on(self, session_id: int, work: tuple[Work, ...]) -> bool:
        clock, patience = self.runtime.clock, self._seconds * PATIENCE
        found = self.runtime.stores.sessions.session(session_id)
        agent = self.runtime.agents.title(found.key.agent) if found else ""
        title = wording.STILL_RUNS.format(
            agent=agent,
            minutes=self._seconds / 60,
            what=self.runtime.vault.redact(wording.name(work)),
            patience=patience / 60,
        )
        request = AskRequest(f"background:{session_id}", title, (KEEP, END), kind="background")
        deadline = clock.now() + patience
        asked = await persist(clock, self._store.ask, session_id, request, deadline=deadline)
        if asked is None:
            return False
        self.runtime.outbox.send(asked[1])
        self.runtime.ledger.watch()
        self.runtime.feed.notify(session_id)
        bound = self._tasks.start(clock.sleep(patience), name="patience")
        try:
            while (answer := await self._store.answer(asked[0])) is None and not bound.done():
                self._answered.clear()
                waiting = self._tasks.start(self._answered.wait(), name="answer")
                await asyncio.wait({waiting, bound}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
        finally:
            bound.cancel()
        return answer == KEEP.id
