"""Caches who people are on a platform and whether they may use an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from cachetools import TTLCache

from app.clock import Clock
from app.errors import PostDelayed, ServiceRefused

CACHED_MEMBERS: Final = 10_000
"""Cache size: more people than talk to one agent within minutes, and a few megabytes."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Member:
    """What a platform says about a person."""

    refusal: str | None
    """Why they may not use an agent; None if they may."""
    name: str = ""


class Members(Generic[K]):
    """Members of one organisation, looked up by their platform id."""

    def __init__(
        self,
        look_up: Callable[[K], Awaitable[Member]],
        clock: Clock,
        *,
        seconds: float,
        outage_seconds: float = 0.0,
    ) -> None:
        """Cache answers; during an outage they stay valid for `outage_seconds` more."""
        self._look_up = look_up
        kept, now = seconds + outage_seconds, clock.monotonic
        self._fresh: TTLCache[K, Member] = TTLCache(CACHED_MEMBERS, seconds, timer=now)
        self._stale: TTLCache[K, Member] = TTLCache(CACHED_MEMBERS, kept, timer=now)

    def forget(self) -> None:
        """Forget everyone: what people may do has changed."""
        self._fresh.clear()
        self._stale.clear()

    async def find(self, key: K) -> Member:
        """Return a member from the cache, else from the platform.

        Raises:
            PostError: the platform does not say.
            ServiceRefused: the platform does not accept the agent's credentials.
        """
        if (known := self._fresh.get(key)) is not None:
            return known
        try:
            found = await self._look_up(key)
        except (PostDelayed, ServiceRefused):
            if (known := self._stale.get(key)) is not None:
                return known
            raise
        self._fresh[key] = self._stale[key] = found
        return found
