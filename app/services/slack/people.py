"""Looks up people on Slack: their names, and whether they are full members."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any, Final

from app.clock import Clock
from app.errors import PostError
from app.services.common.members import Member, Members
from app.services.slack import wording
from app.services.slack.api import SlackApi, SlackRefused

logger = logging.getLogger(__name__)

CACHE_SECONDS: Final = 600.0
"""Cache time: a member who becomes a guest can act for ten minutes more at most."""
NAME_SECONDS: Final = 2.0
"""Time limit to look up names for a stored message: a person waits for the agent."""


class People:
    """The people of one workspace, as one app sees them."""

    def __init__(self, api: SlackApi, clock: Clock) -> None:
        self._api = api
        self._members = Members(self._look_up, clock, seconds=CACHE_SECONDS)

    async def person(self, user: str, team: str) -> Member:
        """Return what Slack says about a user.

        Raises:
            PostError: Slack does not say.
        """
        return await self._members.find((user, team))

    async def names(self, users: Collection[str], team: str) -> dict[str, str]:
        """Return the names of some users, as far as Slack gives them in time."""
        found: dict[str, str] = {}

        async def look_up(user: str) -> None:
            try:
                found[user] = (await self.person(user, team)).name
            except PostError as error:
                logger.info("%s", error)

        try:
            async with asyncio.timeout(NAME_SECONDS), asyncio.TaskGroup() as group:
                for user in users:
                    group.create_task(look_up(user))
        except TimeoutError:
            logger.info("Slack took too long to name %s", ", ".join(set(users) - found.keys()))
        return found

    async def _look_up(self, key: tuple[str, str]) -> Member:
        user, team = key
        try:
            answer = await self._api.read("users.info", user=user)
        except SlackRefused as error:
            if error.error not in {"user_not_found", "user_not_visible"}:
                raise
            return Member(wording.NOT_FOUND, user)
        return _member(answer["user"], team)


def _member(user: dict[str, Any], team: str) -> Member:
    profile = user.get("profile") or {}
    names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"))
    name = next(filter(None, names), None) or user.get("name") or user["id"]
    return Member(_refusal(user, team), str(name))


def _refusal(user: dict[str, Any], team: str) -> str | None:
    teams = {user.get("team_id"), *((user.get("enterprise_user") or {}).get("teams") or ())}
    if user.get("is_stranger") or team not in teams:
        return wording.FROM_ANOTHER_WORKSPACE
    if user.get("is_restricted") or user.get("is_ultra_restricted"):
        return wording.GUEST
    if user.get("deleted"):
        return wording.NOT_ACTIVE
    return None
