"""Limits what a day may cost: for each person, place and agent, and in total; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.model.spending import Share

SHARES: tuple[Share, ...] = ("person", "place", "agent", "day")


@dataclass(frozen=True, slots=True)
class DailyLimits:
    """How many dollars a day may cost; a day begins at midnight in the bridge's time zone."""

    usd: Mapping[Share, float]
    """The limits that are set."""
    zone: ZoneInfo

    def day_of(self, now: float) -> str:
        """Name the day of a moment."""
        return datetime.fromtimestamp(now, self.zone).date().isoformat()

    def find_end(self, now: float) -> float:
        """Return when the day of a moment ends."""
        tomorrow = datetime.fromtimestamp(now, self.zone).date() + timedelta(days=1)
        return datetime.combine(tomorrow, time(), self.zone).timestamp()

    def find_exceeded(self, spent: Mapping[Share, float]) -> Share | None:
        """Return the first limit that is reached."""
        limited = (each for each in SHARES if each in self.usd)
        return next((each for each in limited if spent.get(each, 0.0) >= self.usd[each]), None)


NO_LIMITS = DailyLimits({}, ZoneInfo("UTC"))
