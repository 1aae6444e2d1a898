"""Limits what a day may cost: for each person, place and agent, and in total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.clock import machine_zone
from app.config import Configuration
from app.store.spending import Share

SHARES: tuple[Share, ...] = ("person", "place", "agent", "day")


@dataclass(frozen=True, slots=True)
class DailyLimits:
    """How many dollars a day may cost; a day begins at midnight in the bridge's time zone."""

    usd: Mapping[Share, float]
    """The limits that are set."""
    zone: ZoneInfo

    @classmethod
    def of(cls, configuration: Configuration) -> DailyLimits:
        """Return the limits that the operator set."""
        settings = configuration.settings
        set_to: dict[Share, float | None] = {
            "person": settings.budget_person_usd,
            "place": settings.budget_place_usd,
            "agent": settings.budget_agent_usd,
            "day": settings.budget_day_usd,
        }
        usd = {share: value for share, value in set_to.items() if value is not None}
        zone = settings.time_zone or machine_zone(configuration.surroundings)
        return cls(usd, ZoneInfo(zone))

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
