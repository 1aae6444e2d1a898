"""Compares what platforms have with the inbox: at the start, after a gap, and all the time.

What is missing goes through the inbox like a live event. The message has the same id in both, so
that one that arrives after all changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from typing_extensions import override

from app.core.adapters import Adapter
from app.core.hooks import PromptParts
from app.core.runtime import Runtime
from app.features.missed.watch import Watch
from app.features.part import Part
from app.model.types import Message, Session, Turn
from app.tasks import Tasks

logger = logging.getLogger(__name__)

FOLLOW_SECONDS = 10.0
"""How often the adapters are looked at: agents come and go while the bridge runs."""
AGAIN_SECONDS = 60.0
"""Pause after a failure that has no name."""
FOUND_LATE = "The message with the words {words!r} was sent at {at} UTC and reached you late."
QUOTED_CHARACTERS = 60


class Missed(Part):
    """What all adapters missed."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._watches: dict[Adapter, Watch] = {}
        self._running: dict[Adapter, asyncio.Task[None]] = {}
        self._tasks = Tasks("missed messages")

    @override
    def start(self) -> None:
        self._tasks.start(self._follow(), name="adapters")

    @override
    async def close(self) -> None:
        await self._tasks.close()
        for watch in self._watches.values():
            await watch.keep()

    @override
    async def prompt_parts(
        self, session: Session, turn: Turn, messages: Sequence[Message], *, begins: bool
    ) -> PromptParts:
        """Tell the agent which words it gets late."""
        late = [(each, each.sent_at) for each in messages if each.sent_at is not None]
        return PromptParts(notes=tuple(_note(message, at) for message, at in late))

    async def _follow(self) -> None:
        """Watch every adapter that the bridge has, for as long as it has it."""
        while True:
            # One without sources of its own, as that of the page, misses nothing.
            present = {
                each
                for each in self.runtime.adapters.values()
                if type(each).sources is not Adapter.sources
            }
            for adapter in self._watches.keys() - present:
                self._running.pop(adapter).cancel()
                del self._watches[adapter]
            for adapter in present - self._watches.keys():
                watch = self._watches[adapter] = Watch(self.runtime, adapter)
                self._running[adapter] = self._tasks.start(
                    self._keep(watch), name=adapter.service_name
                )
            await self.runtime.clock.sleep(FOLLOW_SECONDS)

    async def _keep(self, watch: Watch) -> None:
        while True:
            try:
                await watch.run()
            except Exception:
                logger.exception("could not look for missed messages")
            await self.runtime.clock.sleep(AGAIN_SECONDS)


def _note(message: Message, at: float) -> str:
    words = " ".join(message.text.split())[:QUOTED_CHARACTERS]
    moment = datetime.fromtimestamp(at, UTC)
    return FOUND_LATE.format(words=words, at=f"{moment:%Y-%m-%d %H:%M}")
