"""Retries GitHub calls for as long as people can wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
from gidgethub import GitHubException

from app.core.ports import Clock
from app.core.retry import retry
from app.errors import PostDelayed

PAUSES = (1.0, 5.0, 15.0)
"""Seconds between attempts: a hiccup must not cost a turn."""
LONGEST_SECONDS = 60.0
"""The longest pause that GitHub may ask for; above it people are told that the call failed."""
BRIEF_PAUSES = (1.0, 3.0)
BRIEF_SECONDS = 5.0
"""The same while a whole conversation waits and a person may want to stop it."""

T = TypeVar("T")


async def retry_github(clock: Clock, call: Callable[[], Awaitable[T]], *, brief: bool = False) -> T:
    """Make a call that may be repeated.

    Raises:
        PostRejected: GitHub refuses it for good.
        PostDelayed: all attempts failed.
    """

    async def attempt() -> T:
        try:
            return await call()
        except (GitHubException, httpx.HTTPError) as error:
            raise PostDelayed(str(error) or type(error).__name__) from error

    pauses, longest = (BRIEF_PAUSES, BRIEF_SECONDS) if brief else (PAUSES, LONGEST_SECONDS)
    return await retry(clock, attempt, pauses, longest=longest)
