"""Keeps what one installation writes under GitHub's limits, whoever writes; time is an argument.

GitHub counts content that is made: 80 requests a minute and 500 an hour. Progress leaves room for
results, so that an answer never waits behind somebody's plan.
"""

from __future__ import annotations

from collections import deque

MINUTE_SECONDS = 60.0
HOUR_SECONDS = 3600.0
A_MINUTE = 75
"""Five under GitHub's limit: its minute is not ours."""
AN_HOUR = 480
"""Twenty under GitHub's limit, for the same reason."""
PROGRESS_SHARE = 0.6
"""How much of that progress may use."""


class Pace:
    """What one installation wrote during the last hour."""

    def __init__(self) -> None:
        self._written: deque[float] = deque()
        self._not_before = 0.0

    def wait(self, now: float, *, progress: bool = False) -> float:
        """Tell how many seconds the next write must wait."""
        while self._written and self._written[0] <= now - HOUR_SECONDS:
            self._written.popleft()
        share = PROGRESS_SHARE if progress else 1.0
        return max(
            0.0,
            self._not_before - now,
            self._until_room(now, int(A_MINUTE * share), MINUTE_SECONDS),
            self._until_room(now, int(AN_HOUR * share), HOUR_SECONDS),
        )

    def wrote(self, now: float) -> None:
        """Count a write."""
        self._written.append(now)

    def rest(self, until: float) -> None:
        """Write nothing before a time: GitHub said so."""
        self._not_before = max(self._not_before, until)

    def _until_room(self, now: float, allowed: int, seconds: float) -> float:
        if len(self._written) < allowed:
            return 0.0
        return self._written[-allowed] + seconds - now
