"""Looks up people on Linear: full members of the organisation can use an agent."""

from __future__ import annotations

from typing import Final

from app.services.common.people import Member
from app.services.linear import events, wording
from app.services.linear.api import LinearApi, LinearRefused

CACHE_SECONDS: Final = 300.0
"""Cache time: a member who leaves is locked out soon."""
OUTAGE_SECONDS: Final = 3600.0
"""Extra cache time while Linear does not answer: rate limits last up to an hour, and a member who
left cannot do anything in Linear meanwhile."""


async def look_up_member(api: LinearApi, user_id: str) -> Member:
    """Ask Linear who a user is.

    Raises:
        PostDelayed: not now.
        ServiceRefused: not with these credentials.
    """
    name = f"{events.SERVICE}:{user_id}"
    if user_id == events.AUTOMATION.id:
        return Member(wording.NOT_LISTED.format(who=wording.AUTOMATIONS, name=name))
    try:
        user = (await api.call("user", id=user_id))["user"]
    except LinearRefused:
        return Member(wording.NOT_A_MEMBER)
    if user["app"]:
        return Member(wording.NOT_LISTED.format(who=wording.APPS, name=name))
    if user["guest"] or not user["active"]:
        return Member(wording.NOT_A_FULL_MEMBER)
    return Member(None)
