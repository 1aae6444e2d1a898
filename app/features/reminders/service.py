"""Reminds people of asks that nobody answered: first who asked the agent, then its approvers.

Each of them is reminded once, also over a restart: the copy is committed before it is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from typing_extensions import override

from app.core.adapters import Adapter
from app.core.hooks import PromptParts
from app.core.intake.floor import Access
from app.core.runtime import Runtime
from app.errors import BridgeError, SpeakerUnknown
from app.features.part import Part
from app.features.reminders import wording
from app.features.reminders.store import Copy, ReminderStore, WaitingAsk
from app.model.types import Message, Session, Speaker, Turn
from app.model.wording import UNCHECKED
from app.retry import persist
from app.tasks import Tasks

logger = logging.getLogger(__name__)

LONGEST_SECONDS = 60.0
"""The longest pause between two looks: a reminder is at most that late."""
LOOKS = 4
"""How often a shorter wait is looked at before it is over."""


class Reminders(Part):
    """The reminders of all asks."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._store = runtime.stores.open(ReminderStore)
        self._clock = runtime.clock
        self._tasks = Tasks("reminders")
        self._seconds = runtime.configuration.settings.ask_remind_minutes * 60.0
        self._done: set[tuple[int, int]] = set()
        """The asks, and for each whether it was brought to the asker (1) or to approvers (2)."""

    @override
    def start(self) -> None:
        if self._seconds:
            self._tasks.start(self._watch(), name="asks")

    @override
    async def close(self) -> None:
        await self._tasks.close()

    @override
    async def prompt_parts(
        self, session: Session, turn: Turn, messages: Sequence[Message], *, begins: bool
    ) -> PromptParts:
        """Tell an agent which of its asks nobody answered, once."""
        open_ended = await self._store.unanswered(session.id)
        if not open_ended:
            return PromptParts()
        asks = [number for number, _ in open_ended]

        async def note_told() -> None:
            await persist(self._clock, self._store.told, asks)

        notes = tuple(wording.NOBODY_ANSWERED.format(title=title) for _, title in open_ended)
        return PromptParts(notes=notes, on_sent=note_told)

    async def _watch(self) -> None:
        while True:
            try:
                await self._look()
            except BridgeError as error:
                logger.warning("asks cannot be looked at: %s", error)
            except Exception:
                logger.exception("asks cannot be looked at")
            await self._clock.sleep(min(LONGEST_SECONDS, self._seconds / LOOKS))

    async def _look(self) -> None:
        now = self._clock.now()
        waiting = await self._store.waiting(now - self._seconds)
        self._done &= {(ask.id, stage) for ask in waiting for stage in (1, 2)}
        for ask in waiting:
            stages = self._stages(ask)
            due = min(int((now - ask.since) / self._seconds), len(stages))
            for stage, people in enumerate(stages[:due], 1):
                if (ask.id, stage) not in self._done and await self._remind(ask, people):
                    self._done.add((ask.id, stage))

    def _stages(self, ask: WaitingAsk) -> list[Sequence[Speaker]]:
        """List whom to remind one after another: who asked, then the agent's approvers."""
        agent = self.runtime.agents.get(ask.agent)
        named = (each.partition(":") for each in (agent.config.approvers if agent else ()))
        here = [Speaker(name, name) for service, _, name in named if service == ask.place.service]
        first = [ask.asker] if ask.asker is not None else []
        known = {each.id for each in first}
        others = [each for each in here if each.id not in known]
        return [each for each in (first, others) if each]

    async def _remind(self, ask: WaitingAsk, people: Sequence[Speaker]) -> bool:
        """Bring an ask to those of these people who may answer it; False if it must wait."""
        adapter = self.runtime.adapters.get(ask.surface.adapter)
        if adapter is None:
            return False
        try:
            allowed = [each for each in people if await self._may_answer(adapter, each, ask)]
            copies = await self._copy(adapter, allowed, ask)
        except BridgeError as error:
            logger.info("ask %d waits for its reminder: %s", ask.id, error)
            return False
        if copies:
            posts = await persist(self._clock, self._store.remind, ask.id, copies)
            self.runtime.outbox.send(*posts)
        return True

    async def _may_answer(self, adapter: Adapter, person: Speaker, ask: WaitingAsk) -> bool:
        if adapter.is_group(person.id):
            return True  # each member is checked once they answer
        access = Access.of(self.runtime.configuration.settings)
        why = await access.refusal(adapter, person, ask.place)
        if why == UNCHECKED:
            raise SpeakerUnknown(why)
        return why is None

    async def _copy(
        self, adapter: Adapter, people: Sequence[Speaker], ask: WaitingAsk
    ) -> list[Copy]:
        """Make a copy for each who is reached in private, and one that names the others."""
        private = {each.id: await adapter.reach(each.id) for each in people}
        copies = [Copy(key, link=ask.link) for key in private.values() if key is not None]
        named = tuple(name for name, key in private.items() if key is None)
        return [*copies, *([Copy(ask.surface, named)] if named else [])]
