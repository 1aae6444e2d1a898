"""Keeps an app's calls within Slack's limits: one bucket per method, with room for answers.

Slack counts the calls of one app to one method in one workspace, per minute. Progress uses a part
of that only, at an even rate, so that a final answer never waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.clock import Clock
from app.errors import PostDelayed

MINUTE: Final = 60.0
ONE: Final = 0.999
"""A whole call: who has waited for one must not miss it by a rounding error."""


@dataclass(frozen=True, slots=True)
class Share:
    """What progress may use of a method: some calls at once, then so many per minute."""

    burst: float
    per_minute: float


SHARES: Final = {
    "agents.sessions.setStatus": Share(20, 20),  # of 50
    "chat.appendStream": Share(20, 50),  # of 100
    "chat.startStream": Share(10, 10),  # of 20: no answer starts a stream
    "chat.update": Share(10, 25),  # of 50
    "conversations.replies": Share(10, 20),  # of 50
    "reactions.add": Share(10, 20),  # of 50
}
"""The rest of what Slack allows in any minute is for answers, and for what people wait for."""


@dataclass(slots=True)
class _Bucket:
    """The calls that are left to progress, as they were at a time."""

    left: float
    at: float


class Limits:
    """The buckets of one app."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._closed: dict[str, float] = {}
        """Until when Slack takes no call of a method."""

    def take(self, method: str, *, yields: bool) -> None:
        """Count a call, if it can be made now.

        Raises:
            PostDelayed: Slack said to wait, or the rest is for answers.
        """
        now = self._clock.monotonic()
        wait = self._closed.get(method, now) - now
        if wait <= 0 and method in SHARES:
            wait = self._count(method, SHARES[method], now, yields=yields)
        if wait > 0:
            raise PostDelayed(f"Slack limits {method}", retry_after=wait)

    def close(self, method: str, seconds: float) -> None:
        """Make no call of a method for some time, as Slack demands."""
        self._closed[method] = self._clock.monotonic() + seconds

    def _count(self, method: str, share: Share, now: float, *, yields: bool) -> float:
        """Count a call; returns how long it has to wait if there is no room for it."""
        bucket = self._buckets.setdefault(method, _Bucket(share.burst, now))
        earned = (now - bucket.at) * share.per_minute / MINUTE
        bucket.left, bucket.at = min(share.burst, bucket.left + earned), now
        if yields and bucket.left < ONE:
            return (1 - bucket.left) * MINUTE / share.per_minute
        # Many answers make progress wait, but for a minute at most.
        bucket.left = max(bucket.left - 1, 1 - share.per_minute)
        return 0.0
