"""Asks Linear about the issue or comment that a link leads to, and the agent's session there."""

from __future__ import annotations

import re
from typing import Any, Final

from app.model.keys import PlaceKey
from app.model.outcomes import Obstacle, Sighting
from app.model.text import moment
from app.services.linear import events
from app.services.linear.api import LinearApi, LinearRefused

_LINK: Final = re.compile(
    r"https://linear\.app/[\w-]+/issue/([A-Z][A-Z0-9]*-[0-9]+)(?:/[^#?]*)?(?:\?[^#]*)?"
    r"(?:#comment-([0-9a-f]{8})[0-9a-f-]*)?"
)


async def look_up(api: LinearApi, link: str, user: str) -> Sighting | None:
    """Say what Linear tells about an issue or a comment; None if the link is not one of Linear's.

    `user` is the agent's. Raises what the API does.
    """
    found = _LINK.fullmatch(link.strip())
    if found is None:
        return None
    place = PlaceKey(events.SERVICE, found[1])
    try:
        issue = (await api.call("issue_sessions", id=found[1]))["issue"]
    except LinearRefused:
        return Sighting(place, "", None, Obstacle.ABSENT, found[1])
    own = [each for each in issue["agentSessions"]["nodes"] if each["appUser"]["id"] == user]
    begun = [each for each in own if _begins(each, found[2] or "")]
    if not begun:
        return Sighting(place, "", None, Obstacle.UNMENTIONED, found[1])
    session = max(begun, key=lambda each: str(each["createdAt"]))
    return Sighting(place, session["id"], moment(session["createdAt"]))


def _begins(session: dict[str, Any], comment: str) -> bool:
    """Tell whether a session began with a comment; every session does without one."""
    parts = (session.get("comment"), session.get("sourceComment"))
    return not comment or any(part and part["id"].startswith(comment) for part in parts)
