"""Knows our agents and the people on one platform.

Which agent answers is decided once for all agents, so each adapter must know all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from cachetools import TTLCache

from app.clock import Clock
from app.errors import PostDelayed, ServiceRefused
from app.retry import persist
from app.store.sealed import SealedStore

OTHERS_SECONDS: Final = 10.0
"""Time limit to wait for the identities of the other agents at the start."""

IdentityT = TypeVar("IdentityT")


class PastAgents:
    """Who agents are or were on a platform: one that is gone is still understood when mentioned."""

    def __init__(self, service: str, store: SealedStore, clock: Clock) -> None:
        self._service = service
        self._store = store
        self._clock = clock

    def all(self, agents: Iterable[str]) -> dict[str, str]:
        """Return what each of some agents was called on the platform, if that is known."""
        found = ((agent, self._store.kept(self._name(agent))) for agent in agents)
        return {agent: called for agent, called in found if called is not None}

    async def note(self, agent: str, called: str) -> None:
        """Remember what an agent is called."""
        if self._store.kept(self._name(agent)) != called:
            await persist(self._clock, self._store.keep, self._name(agent), called)

    def _name(self, agent: str) -> str:
        return f"identity:{self._service}:{agent}"


class PlatformAgents(Generic[IdentityT]):
    """The agents that are set up on a platform, and the identities known so far."""

    def __init__(self, agents: Iterable[str]) -> None:
        self._events = {agent: asyncio.Event() for agent in agents}
        self._settled = {agent: asyncio.Event() for agent in self._events}
        self.known: dict[str, IdentityT] = {}
        """The identities known so far, by agent."""

    def add(self, agent: str, identity: IdentityT) -> None:
        """Set an agent's identity."""
        self.known[agent] = identity
        self._events[agent].set()
        self._settled[agent].set()

    def refuse(self, agent: str) -> None:
        """Let no other agent wait for one that the platform does not accept."""
        self._settled[agent].set()

    async def wait(self, agent: str) -> IdentityT:
        """Wait until an agent's identity is known."""
        await self._events[agent].wait()
        return self.known[agent]

    async def wait_for_all(self) -> None:
        """Wait until all identities are known or refused, for a bounded time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OTHERS_SECONDS):
                for each in self._settled.values():
                    await each.wait()


CACHED_MEMBERS: Final = 10_000
"""Cache size: more people than talk to one agent within minutes, and a few megabytes."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a platform says about a person."""

    refusal: str | None
    """Why they may not use an agent; None if they may."""
    name: str = ""


class Members(Generic[K]):
    """Members of one organisation, looked up by their platform id."""

    def __init__(
        self,
        look_up: Callable[[K], Awaitable[Profile]],
        clock: Clock,
        *,
        seconds: float,
        outage_seconds: float = 0.0,
    ) -> None:
        """Cache answers; during an outage they stay valid for `outage_seconds` more."""
        self._look_up = look_up
        kept, now = seconds + outage_seconds, clock.monotonic
        self._fresh: TTLCache[K, Profile] = TTLCache(CACHED_MEMBERS, seconds, timer=now)
        self._stale: TTLCache[K, Profile] = TTLCache(CACHED_MEMBERS, kept, timer=now)

    def forget(self) -> None:
        """Forget everyone: what people may do has changed."""
        self._fresh.clear()
        self._stale.clear()

    async def find(self, key: K) -> Profile:
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
