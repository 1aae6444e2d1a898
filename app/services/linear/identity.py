"""Identifies an agent on Linear, reports why Linear does not accept it, and looks up people."""

from __future__ import annotations

import asyncio
import logging
from itertools import repeat
from typing import Any, Final

from app.clock import Clock
from app.errors import PostDelayed, PostError, ServiceRefused
from app.retry import Retries
from app.services.common.people import PlatformAgents, Profile
from app.services.linear import events, wording
from app.services.linear.api import LinearApi, LinearRefused
from app.services.linear.auth import LinearTokens
from app.services.linear.settings import LinearCredentials
from app.services.linear.webhook import LinearIdentity

logger = logging.getLogger(__name__)


RETRY_SECONDS: Final = 60.0
"""Pause before the next try when Linear cannot be reached and names no time."""
REFUSED_SECONDS: Final = 300.0
"""Pause before the next try when Linear issues no token: an admin may allow it meanwhile."""


class Identification:
    """One agent's identity in a workspace."""

    def __init__(
        self,
        name: str,
        api: LinearApi,
        tokens: LinearTokens,
        clock: Clock,
        credentials: LinearCredentials,
    ) -> None:
        self._name = name
        self._api = api
        self._tokens = tokens
        self._clock = clock
        self._expected = credentials.agent_id
        self._installed = asyncio.Event()
        self._roster: PlatformAgents[LinearIdentity] = PlatformAgents([name])
        self.refused = ""
        """Why Linear does not accept the agent, with the remedy; empty if it does."""

    @property
    def identity(self) -> LinearIdentity | None:
        """The agent's identity, once it is known."""
        return self._roster.known.get(self._name)

    async def identify(self) -> None:
        """Look up the agent's identity; waits until Linear is back, or the agent is installed.

        Raises:
            ServiceRefused: only a restart with other settings can help.
        """
        retries = Retries(self._clock, repeat(RETRY_SECONDS))
        while True:
            self._installed.clear()
            try:
                await self._ask_linear()
            except PostDelayed as error:
                await retries.wait(error)
            except ServiceRefused as error:
                if not self._tokens.installable:
                    raise
                if self.refused != str(error):
                    logger.error("%s", error)  # noqa: TRY400 - it says all that there is to know
                self.refused = str(error)
                await self._wait_for_change()
            else:
                return

    async def wait(self) -> LinearIdentity:
        """Wait until `identify` or `install` has found the agent's identity."""
        return await self._roster.wait(self._name)

    async def install(self, code: str, back: str) -> str:
        """Install with the code that Linear gave an admin; returns the agent and its workspace.

        Raises:
            ServiceRefused: Linear issues no token for it.
            PostError: not now, or Linear refuses the new token.
        """
        await self._api.install(code, back)
        self._installed.set()
        viewer = await self._ask_linear()
        return f"{viewer['name']} in {viewer['organization']['name']}"

    async def check_token(self) -> None:
        """Call Linear, so that a token that no longer works is reported as trouble."""
        try:
            await self._api.call("viewer")
        except (PostError, ServiceRefused) as error:
            logger.warning("%s", error)

    async def _wait_for_change(self) -> None:
        """Wait until an admin installs the agent, or may have granted it a token."""
        async with asyncio.TaskGroup() as group:
            waits = {
                group.create_task(self._installed.wait()),
                group.create_task(self._clock.sleep(REFUSED_SECONDS)),
            }
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()

    async def _ask_linear(self) -> dict[str, Any]:
        viewer: dict[str, Any] = (await self._api.call("viewer"))["viewer"]
        if self._expected is not None and viewer["id"] != self._expected:
            raise ServiceRefused(
                self._name,
                "LINEAR_AGENT_ID is not the token's user",
                "Remove LINEAR_AGENT_ID: the bridge looks it up.",
            )
        if not viewer["app"]:
            raise ServiceRefused(
                self._name,
                "the token belongs to a person, not to an agent",
                "Install the application with actor=app and use the token it gives you.",
            )
        self._roster.add(self._name, LinearIdentity(viewer["id"], viewer["organization"]["id"]))
        self.refused = ""
        return viewer


CACHE_SECONDS: Final = 300.0
"""Cache time: a member who leaves is locked out soon."""
OUTAGE_SECONDS: Final = 3600.0
"""Extra cache time while Linear does not answer: rate limits last up to an hour, and a member who
left cannot do anything in Linear meanwhile."""


async def look_up_member(api: LinearApi, user_id: str) -> Profile:
    """Ask Linear who a user is.

    Raises:
        PostDelayed: not now.
        ServiceRefused: not with these credentials.
    """
    name = f"{events.SERVICE}:{user_id}"
    if user_id == events.AUTOMATION.id:
        return Profile(wording.NOT_LISTED.format(who=wording.AUTOMATIONS, name=name))
    try:
        user = (await api.call("user", id=user_id))["user"]
    except LinearRefused:
        return Profile(wording.NOT_A_MEMBER)
    if user["app"]:
        return Profile(wording.NOT_LISTED.format(who=wording.APPS, name=name))
    if user["guest"] or not user["active"]:
        return Profile(wording.NOT_A_FULL_MEMBER)
    return Profile(None)


async def find_profile(api: LinearApi, user_id: str) -> str:
    """Return the address of a user's profile, which mentions them in a text; else the id.

    Raises:
        PostDelayed: not now.
        ServiceRefused: not with these credentials.
    """
    try:
        return str((await api.call("user", id=user_id))["user"]["url"])
    except LinearRefused:
        return user_id
