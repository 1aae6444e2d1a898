"""Keeps an app's calls within Slack's limits: one bucket per method, with room for answers.

Slack counts the calls of one app to one method in one workspace. Progress may use a part of that
only, so that a final answer never waits for it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final

from app.core.ports import Clock
from app.errors import PostDelayed

WINDOW_SECONDS: Final = 60.0
CALLS: Final = {
    "agents.sessions.setStatus": 50,
    "chat.appendStream": 100,
    "chat.startStream": 20,
    "chat.update": 50,
    "conversations.replies": 50,
}
"""Calls per minute that Slack allows at least, where progress could use them up."""
SHARE: Final = 0.7
"""The part of them that progress may use."""


class Limits:
    """The buckets of one app."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recent: defaultdict[str, deque[float]] = defaultdict(deque)
        self._closed: dict[str, float] = {}
        """Until when Slack takes no call of a method."""

    def take(self, method: str, *, yields: bool) -> None:
        """Count a call, if it can be made now.

        Raises:
            PostDelayed: Slack said to wait, or the rest is for answers.
        """
        now = self._clock.monotonic()
        wait = self._closed.get(method, now) - now
        if method in CALLS:
            wait = max(wait, self._count(method, now, yields=yields))
        if wait > 0:
            raise PostDelayed(f"Slack limits {method}", retry_after=wait)

    def close(self, method: str, seconds: float) -> None:
        """Make no call of a method for some time, as Slack demands."""
        self._closed[method] = self._clock.monotonic() + seconds

    def _count(self, method: str, now: float, *, yields: bool) -> float:
        """Count a call; returns how long it has to wait if there is no room for it."""
        recent = self._recent[method]
        while recent and recent[0] <= now - WINDOW_SECONDS:
            recent.popleft()
        if yields and len(recent) >= (most := int(CALLS[method] * SHARE)):
            return recent[-most] + WINDOW_SECONDS - now
        recent.append(now)
        return 0.0
