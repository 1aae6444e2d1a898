"""Defines what `doctor --live` plays on a real platform: named steps, and what they leave to undo.

A step writes only through `Undo.make`, so that everything it made is removed, also when the check
is interrupted in the middle of a call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from app.clock import Clock
from app.errors import BridgeError, ConfigurationError, PostDelayed
from app.tasks import Tasks

Made = TypeVar("Made")

MAKE_SECONDS: Final = 30.0
"""How long an interrupted check waits for a call that may have made something."""
UNDO_SECONDS: Final = 30.0
"""Time limit for undoing one thing."""
UNDO_TRIES: Final = 4
"""Maximum attempts to undo one thing when the platform says to wait."""
LONGEST_WAIT_SECONDS: Final = 20.0
"""Longest wait before the next attempt."""


class LiveVerdict(StrEnum):
    """How what was seen compares with what is assumed."""

    AS_ASSUMED = "as assumed"
    DIFFERS = "differs"
    LOOK = "look yourself"
    NOT_SEEN = "not seen"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a step saw."""

    words: str
    verdict: LiveVerdict


def compare(words: str, *, as_assumed: bool) -> Seen:
    """Say what was seen, and whether it is what is assumed."""
    return Seen(words, LiveVerdict.AS_ASSUMED if as_assumed else LiveVerdict.DIFFERS)


@dataclass(frozen=True, slots=True)
class LiveStep:
    """One thing to try."""

    name: str
    assumes: str
    """What the bridge takes for granted about the platform."""
    run: Callable[[], Awaitable[Seen]]
    minutes: float = 0.0
    """How long it takes, if that is more than seconds."""


class Undo:
    """Removes what steps made, the last first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks = Tasks("live check")
        self._made: list[tuple[str, Callable[[], Awaitable[object]]]] = []

    async def make(
        self,
        what: str,
        making: Coroutine[Any, Any, Made],
        remove: Callable[[Made], Awaitable[object]],
    ) -> Made:
        """Make something that is removed at the end; an interruption waits for the answer."""

        async def run() -> Made:
            made = await making
            self.add(what, lambda: remove(made))
            return made

        task: asyncio.Task[Made | BridgeError] = self._tasks.start(_hold_error(run()), name=what)
        try:
            made = await asyncio.shield(task)
        except asyncio.CancelledError:
            await self._tasks.settle(MAKE_SECONDS)
            raise
        if isinstance(made, BridgeError):
            raise made
        return made

    def add(self, what: str, remove: Callable[[], Awaitable[object]]) -> None:
        """Remember something to be undone."""
        self._made.append((what, remove))

    async def run(self) -> list[str]:
        """Undo everything; returns what is left, and why."""
        left: list[str] = []
        while self._made:
            what, remove = self._made.pop()
            try:
                await self._undo(remove)
            except (BridgeError, TimeoutError) as error:
                left.append(f"{what}: {error or 'the platform did not answer in time'}")
        await self._tasks.close()
        return left

    async def _undo(self, remove: Callable[[], Awaitable[object]]) -> None:
        for attempt in range(UNDO_TRIES):
            try:
                async with asyncio.timeout(UNDO_SECONDS):
                    await remove()
            except PostDelayed as error:
                if attempt == UNDO_TRIES - 1:
                    raise
                await self._clock.sleep(min(error.retry_after or 1.0, LONGEST_WAIT_SECONDS))
            else:
                return


def wrong_place(form: str) -> ConfigurationError:
    """Return an error that says what a place looks like."""
    return ConfigurationError("--place", "is no place on this service", f"Give it as {form}.")


def no_credentials(agent: str) -> ConfigurationError:
    """Return an error that says that an agent is not on the service."""
    return ConfigurationError(
        agent, "has no credentials for this service", "Set it up there first."
    )


async def _hold_error(making: Coroutine[Any, Any, Made]) -> Made | BridgeError:
    try:
        return await making
    except BridgeError as error:
        return error  # for the step, not for the log
