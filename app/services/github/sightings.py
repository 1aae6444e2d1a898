"""Asks GitHub about the issue, comment or review of a link, and whether its App hears of it."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from app.model.outcomes import Obstacle, Sighting
from app.model.text import moment
from app.services.github.api import GithubApi
from app.services.github.client import AppNotInstalled, PermissionMissing
from app.services.github.names import Identities, Kind, Name, Spot
from app.services.github.transport import Gone

_PATH: Final = re.compile(
    r"/([\w.-]+/[\w.-]+)/(?:issues|pull)/([0-9]{1,12})(?:/files)?/?", re.ASCII
)
_PART: Final = re.compile(r"(issuecomment-|discussion_r|r|pullrequestreview-)([0-9]{1,20})")
_KINDS: Final[dict[str, Kind]] = {
    "issuecomment-": "comment",
    "discussion_r": "review-comment",
    "r": "review-comment",
    "pullrequestreview-": "review",
}
_EVENTS: Final[dict[str, str]] = {
    "issue": "issues",
    "comment": "issue_comment",
    "review": "pull_request_review",
    "review-comment": "pull_request_review_comment",
}


def parse_link(link: str, web_url: str) -> tuple[Spot, Name] | None:
    """Read what a link leads to; None if it is no issue, pull request or part of one there."""
    address, home = urlsplit(link), urlsplit(web_url)
    found = _PATH.fullmatch(address.path)
    if found is None or address.netloc != home.netloc:
        return None
    spot = Spot(found[1], int(found[2]))
    part = _PART.fullmatch(address.fragment)
    return spot, Name(_KINDS[part[1]], int(part[2])) if part else Name("issue", spot.number)


async def look_up(api: GithubApi, link: str, web_url: str, us: Identities) -> Sighting | None:
    """Say what GitHub tells about a text; None if the link is not one of GitHub's.

    Raises what the API does.
    """
    named = parse_link(link, web_url)
    if named is None:
        return None
    spot, name = named
    try:
        if name.kind == "issue":
            part = await api.issue(spot)
            body, user, created = part.body, part.user, part.created_at
        elif name.kind == "review":
            return Sighting(spot.place, str(name), None, await _find_deafness(api, name))
        else:
            said = await api.comment(spot, name)
            body, user, created = said.body, said.user, said.created_at
    except AppNotInstalled:
        return Sighting(spot.place, str(name), None, Obstacle.ABSENT, spot.repository)
    except PermissionMissing as error:
        return Sighting(spot.place, str(name), None, Obstacle.NOT_SUBSCRIBED, str(error))
    except Gone:
        return Sighting(spot.place, str(name), None, Obstacle.GONE)
    at = moment(created)
    obstacle = await _find_deafness(api, name)
    if obstacle is None and user is not None and us.speaker(user).kind != "person":
        obstacle = Obstacle.BY_BOT
    if obstacle is None and not us.mentioned(body or "") and name.kind != "review-comment":
        obstacle = Obstacle.UNMENTIONED
    about = _EVENTS[name.kind] if obstacle is Obstacle.NOT_SUBSCRIBED else ""
    return Sighting(spot.place, str(name), at, obstacle, about)


async def _find_deafness(api: GithubApi, name: Name) -> Obstacle | None:
    """Tell whether the App's webhook gets what it would have to."""
    app = await api.app()
    if app is not None and _EVENTS[name.kind] not in app.get("events", ()):
        return Obstacle.NOT_SUBSCRIBED
    hook = await api.as_app("/app/hook/config")
    return Obstacle.HOOK_OFF if hook is not None and not hook.get("url") else None
