"""Asks GitHub again that did not answer, for as long as people can wait for it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import httpx
from gidgethub import GitHubException

from app.core.ports import Clock
from app.errors import PostDelayed

logger = logging.getLogger(__name__)

PAUSES = (1.0, 5.0, 15.0)
"""Seconds before GitHub is asked again: its hiccups must not cost a turn."""
LONGEST_SECONDS = 60.0
"""What GitHub may ask to wait for; rather than longer, people are told that it failed."""
BRIEF_PAUSES = (1.0, 3.0)
BRIEF_SECONDS = 5.0
"""The same while a whole conversation waits, in which somebody may want to say stop."""

T = TypeVar("T")


async def patiently(
    clock: Clock,
    call: Callable[[], Awaitable[T]],
    *,
    pauses: Sequence[float] = PAUSES,
    longest: float = LONGEST_SECONDS,
) -> T:
    """Do what can be done again, in the pauses given or in those that GitHub asks for.

    Raises:
        PostRejected: it never can be done.
        PostDelayed: not now.
    """
    left = iter(pauses)
    while True:
        try:
            return await call()
        except (PostDelayed, GitHubException, httpx.HTTPError) as error:
            why = str(error) or type(error).__name__
            asked = error.retry_after if isinstance(error, PostDelayed) else None
            usual = next(left, None)
            if usual is None or (asked or usual) > longest:
                raise PostDelayed(why, retry_after=asked) from error
            pause = asked or usual
            logger.info("GitHub is asked again in %.0f s: %s", pause, why)
        await clock.sleep(pause)
