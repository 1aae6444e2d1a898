"""Keeps every adapter that brings its own events listening, for as long as the bridge runs.

One that fails is begun anew, ever later; one that its platform refuses for good says so and rests.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from app.core.adapters import ListeningAdapter
from app.core.intake.reader import Intake
from app.core.ports import Clock
from app.core.tasks import Tasks
from app.errors import PostError, ServiceRefused

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
"""A platform that is down is tried once a minute: soon enough for people, rare enough for it."""
STEADY_SECONDS = 300.0
"""Whoever listened for that long did well: its next pause is short again."""


class Listeners:
    """The adapters that listen, and what keeps those from it that do not."""

    def __init__(self, adapters: Iterable[ListeningAdapter], intake: Intake, clock: Clock) -> None:
        self._adapters = list(adapters)
        self._intake = intake
        self._clock = clock
        self._tasks = Tasks("listeners")
        self._refused: dict[str, str] = {}

    def start(self) -> None:
        """Let every adapter listen."""
        for adapter in self._adapters:
            self._tasks.start(self._keep(adapter), name=adapter.service_name)

    async def close(self) -> None:
        """Stop listening."""
        await self._tasks.close()

    def troubles(self) -> dict[str, str]:
        """Say of each adapter why it does not listen; empty words mean that it does."""
        return {
            adapter.service_name: self._refused.get(adapter.service_name) or adapter.trouble
            for adapter in self._adapters
        }

    async def _keep(self, adapter: ListeningAdapter) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            began = self._clock.monotonic()
            try:
                await adapter.listen(self._intake.take)
            except ServiceRefused as error:
                logger.error("%s", error)  # noqa: TRY400 - it says all that there is to know
                self._refused[adapter.service_name] = str(error)
                return
            except Exception as error:
                if self._clock.monotonic() - began > STEADY_SECONDS:
                    pause = FIRST_PAUSE_SECONDS
                # A platform that is down is nobody's bug, and may be down for hours.
                expected = isinstance(error, PostError | TimeoutError)
                logger.log(
                    logging.WARNING if expected else logging.ERROR,
                    "%s stopped listening (%s), next try in %g s",
                    adapter.service_name,
                    str(error) or type(error).__name__,
                    pause,
                    exc_info=not expected,
                )
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            else:
                return
