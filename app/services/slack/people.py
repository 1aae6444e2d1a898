"""Who people are on Slack: their names, and whether they are full members; asked now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from app.core.ports import Clock
from app.errors import PostError
from app.services.slack.api import SlackApi, SlackRefused

logger = logging.getLogger(__name__)

KEEP_SECONDS: Final = 600.0
"""How long an answer counts: somebody made a guest may act for ten minutes more at most."""
NAME_SECONDS: Final = 2.0
"""How long names may hold up a message: Slack waits three seconds for its acknowledgement."""


@dataclass(frozen=True, slots=True)
class Person:
    """What Slack says about somebody."""

    name: str
    refusal: str | None
    """Why they may not make an agent act; None if they may."""


class People:
    """The people of one workspace, as one app sees them."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[float, Person]] = {}

    async def person(self, user: str, team: str) -> Person:
        """Tell who somebody is.

        Raises:
            PostError: Slack does not say.
        """
        at, known = self._known.get(user, (0.0, None))
        if known is not None and self._clock.monotonic() - at < KEEP_SECONDS:
            return known
        try:
            answer = await self._api.read("users.info", user=user)
        except SlackRefused as error:
            if error.error not in {"user_not_found", "user_not_visible"}:
                raise
            person = Person(user, "Slack does not know you in this workspace")
        else:
            person = _person(answer["user"], team)
        self._known[user] = (self._clock.monotonic(), person)
        return person

    async def names(self, users: Iterable[str], team: str) -> dict[str, str]:
        """Tell the names of some people, as far as they can be had quickly."""
        missing = [user for user in users if user not in self._known]
        if missing:
            try:
                async with asyncio.timeout(NAME_SECONDS), asyncio.TaskGroup() as group:
                    for user in missing:
                        group.create_task(self._look_up(user, team))
            except TimeoutError:
                logger.info("Slack took too long to say who %s is", ", ".join(missing))
        return {user: self._known[user][1].name for user in users if user in self._known}

    async def _look_up(self, user: str, team: str) -> None:
        try:
            await self.person(user, team)
        except PostError as error:
            logger.info("%s", error)


def _person(user: dict[str, Any], team: str) -> Person:
    profile = user.get("profile") or {}
    names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"))
    name = next(filter(None, names), None) or user.get("name") or user["id"]
    return Person(str(name), _refusal(user, team))


def _refusal(user: dict[str, Any], team: str) -> str | None:
    teams = {user.get("team_id"), *((user.get("enterprise_user") or {}).get("teams") or ())}
    if user.get("is_stranger") or team not in teams:
        return "only members of this workspace may use it, and you belong to another one"
    if user.get("is_restricted") or user.get("is_ultra_restricted"):
        return "only full members of this workspace may use it, and you are a guest"
    if user.get("deleted"):
        return "your account is not active any more"
    return None
