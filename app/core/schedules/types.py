"""Values of schedules: what is kept of one, what is asked for, and when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Timetable(Protocol):
    """Works out the times of cron expressions."""

    def times(self, expression: str, zone: str, after: float) -> Iterator[float]:
        """Yield the times after a moment, in seconds since 1970, strictly increasing.

        Raises:
            Conflict: the expression or the zone makes no sense, in words.
        """
        ...
