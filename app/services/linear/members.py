"""Who may use an agent: full members of the organisation; asked of Linear now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.core.ports import Clock
from app.errors import PostDelayed, ServiceRefused
from app.services.linear import events
from app.services.linear.api import LinearApi, LinearRefused

MEMBER_SECONDS: Final = 300.0
"""How long it is remembered who is a member: whoever leaves is out soon."""
OUTAGE_SECONDS: Final = 3600.0
"""How long it is relied on that somebody still is one while Linear cannot be asked: its limits are
those of an hour, and whoever left can do nothing in Linear meanwhile."""


@dataclass(frozen=True, slots=True)
class _Known:
    refusal: str | None
    until: float


class Members:
    """The members of one organisation, as far as somebody asked."""

    def __init__(self, api: LinearApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, _Known] = {}

    async def refusal(self, user_id: str) -> str | None:
        """Say why a user may not; None for a full member.

        Raises:
            PostDelayed: not now.
            ServiceRefused: not with these credentials.
        """
        now = self._clock.monotonic()
        known = self._known.get(user_id)
        if known is not None and now < known.until:
            return known.refusal
        try:
            why = await self._why_not(user_id)
        except (PostDelayed, ServiceRefused):
            if known is None or now >= known.until + OUTAGE_SECONDS:
                raise
            return known.refusal
        self._known[user_id] = _Known(why, now + MEMBER_SECONDS)
        return why

    async def _why_not(self, user_id: str) -> str | None:
        if user_id == events.AUTOMATION.id:
            return f"automations are heard only when ALLOWED_BOTS names {events.SERVICE}:{user_id}"
        try:
            user = (await self._api.call("user", id=user_id))["user"]
        except LinearRefused:
            return "only members of the organisation may use this agent"
        if user["app"]:
            return f"apps are heard only when ALLOWED_BOTS names {events.SERVICE}:{user_id}"
        if user["guest"] or not user["active"]:
            return "only full members of the organisation may use this agent"
        return None
