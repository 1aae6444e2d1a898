"""Keeps adapters that fetch their own events listening while the bridge runs.

One that fails is restarted with backoff; one that its platform refuses for good says so and stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from app.clock import Clock
from app.core.adapters import Adapter
from app.core.intake.reader import Intake
from app.errors import PostError, ServiceRefused
from app.retry import backoff
from app.tasks import Tasks

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
"""A platform that is down is tried once a minute: often enough for people, rarely enough for it."""
HANDOVER_SECONDS = 15.0
"""How long an adapter that is replaced listens on while its successor cannot."""
LOOK_SECONDS = 0.05
"""How often the successor is looked at meanwhile."""
STEADY_SECONDS = 300.0
"""After listening for that long, the backoff starts over."""


class Listeners:
    """The adapters that listen, and why others do not."""

    def __init__(self, adapters: Iterable[Adapter], intake: Intake, clock: Clock) -> None:
        self._adapters = {adapter.service_name: adapter for adapter in adapters}
        self._listening: dict[str, asyncio.Task[None]] = {}
        self._started = False
        self._intake = intake
        self._clock = clock
        self._tasks = Tasks("listeners")
        self._refused: dict[str, str] = {}

    def start(self) -> None:
        """Let every adapter listen."""
        self._started = True
        for adapter in self._adapters.values():
            self._listen(adapter)

    async def replace(self, gone: Sequence[str], adapters: Sequence[Adapter]) -> None:
        """Let other adapters listen; one that is replaced ends once its successor listens."""
        ended = {name: self._listening.pop(name) for name in gone if name in self._listening}
        for name in gone:
            self._adapters.pop(name, None)
            self._refused.pop(name, None)
        began = {adapter.service_name: adapter.trouble for adapter in adapters}
        for adapter in adapters:
            self._adapters[adapter.service_name] = adapter
            if self._started:
                self._listen(adapter)
        for name in ended.keys() - began.keys():
            ended[name].cancel()
        if self._started:
            await self._wait_for(began)
        for task in ended.values():
            task.cancel()
        if ended:
            await asyncio.wait(ended.values())

    async def _wait_for(self, began: Mapping[str, str | None]) -> None:
        """Wait until adapters are refused, or their trouble is not the one they began with."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HANDOVER_SECONDS):
                while any(
                    trouble and name not in self._refused and self._trouble(name) == trouble
                    for name, trouble in began.items()
                ):
                    await self._clock.sleep(LOOK_SECONDS)

    def _trouble(self, name: str) -> str | None:
        adapter = self._adapters.get(name)
        return None if adapter is None else adapter.trouble

    async def close(self) -> None:
        """Stop listening."""
        await self._tasks.close()

    def troubles(self) -> dict[str, str]:
        """Say why each watched adapter does not listen; empty if it does, or need not here."""
        if not self._started:
            return {}
        found = {
            adapter.service_name: self._refused.get(adapter.service_name, adapter.trouble)
            for adapter in self._adapters.values()
        }
        return {name: words for name, words in found.items() if words is not None}

    def _listen(self, adapter: Adapter) -> None:
        name = adapter.service_name
        self._listening[name] = self._tasks.start(self._keep(adapter), name=name)

    async def _keep(self, adapter: Adapter) -> None:
        pauses = backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            began = self._clock.monotonic()
            try:
                await adapter.listen(self._intake.take)
            except ServiceRefused as error:
                logger.error("%s", error)  # noqa: TRY400 - the message says it all
                self._refused[adapter.service_name] = str(error)
                return
            except Exception as error:
                if self._clock.monotonic() - began > STEADY_SECONDS:
                    pauses = backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
                pause = next(pauses)
                # A platform that is down is no bug, and may be down for hours.
                expected = isinstance(error, PostError | TimeoutError)
                logger.log(
                    logging.WARNING if expected else logging.ERROR,
                    "%s stopped listening, retry in %g s: %s",
                    adapter.service_name,
                    pause,
                    str(error) or type(error).__name__,
                    exc_info=not expected,
                )
                await self._clock.sleep(pause)
            else:
                return
