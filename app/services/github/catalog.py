"""Which repositories an App opens: asked now and then, since people add and remove some."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from app.core.ports import Clock
from app.services.github.api import GithubApi

KEPT_SECONDS = 60.0
"""How long an answer is used: whoever has just added a repository tries again after a minute."""


class Catalog:
    """The repositories of one App."""

    def __init__(self, api: GithubApi, clock: Clock, *, installation: str | None) -> None:
        """List those of one installation, or of all."""
        self._api = api
        self._clock = clock
        self._installation = installation
        self._names: tuple[str, ...] = ()
        self._until = float("-inf")
        self._asking = asyncio.Lock()

    async def names(self) -> Sequence[str]:
        """List them by name, what changed last first.

        Raises:
            PostError: GitHub does not say.
        """
        async with self._asking:
            if self._until <= self._clock.monotonic():
                found = await self._api.opened(self._installation)
                found.sort(key=lambda each: each.pushed_at or "", reverse=True)
                self._names = tuple(each.full_name for each in found)
                self._until = self._clock.monotonic() + KEPT_SECONDS
            return self._names
