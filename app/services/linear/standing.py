"""Who an agent is on Linear, and what keeps it from being anybody there."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from app.config import LinearCredentials
from app.core.ports import Clock
from app.errors import PostDelayed, PostError, ServiceRefused
from app.services.linear.api import LinearApi
from app.services.linear.auth import Tokens
from app.services.linear.webhook import Identity

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 60.0
"""How long a Linear that cannot be reached is left alone, if it does not say."""
REFUSED_SECONDS: Final = 300.0
"""How long a Linear that gives no token is left alone: somebody may allow it there."""


class Standing:
    """One agent's standing in a workspace."""

    def __init__(
        self,
        name: str,
        api: LinearApi,
        tokens: Tokens,
        clock: Clock,
        credentials: LinearCredentials,
    ) -> None:
        self._name = name
        self._api = api
        self._tokens = tokens
        self._clock = clock
        self._expected = credentials.agent_id
        self._installed = asyncio.Event()
        self._identified = asyncio.Event()
        self.identity: Identity | None = None
        """Who it is, once that is known."""
        self.refused = ""
        """Why it is nobody there, with the remedy; empty if it is somebody."""

    async def known(self) -> None:
        """Wait until it is known who the agent is: until Linear is back, or the agent installed.

        Raises:
            ServiceRefused: nothing that happens while the bridge runs can change it.
        """
        while True:
            self._installed.clear()
            try:
                await self._identify()
            except PostDelayed as error:
                logger.warning("%s: %s", self._name, error)
                await self._clock.sleep(error.retry_after or RETRY_SECONDS)
            except ServiceRefused as error:
                if not self._tokens.installable:
                    raise
                if self.refused != str(error):
                    logger.error("%s", error)  # noqa: TRY400 - it says all that there is to know
                self.refused = str(error)
                await self._change_of_mind()
            else:
                return

    async def identified(self) -> None:
        """Wait until it is known who the agent is, whoever finds it out."""
        await self._identified.wait()

    async def install(self, code: str, back: str) -> str:
        """Take what an admin brings back from Linear; returns who the agent is and where.

        Raises:
            ServiceRefused: Linear gives nothing for it.
            PostError: not now, or not with what it gives.
        """
        await self._api.install(code, back)
        self._installed.set()
        viewer = await self._identify()
        return f"{viewer['name']} in {viewer['organization']['name']}"

    async def look(self) -> None:
        """Find out whether the token still works, and let the trouble be seen if it does not."""
        try:
            await self._api.call("viewer")
        except (PostError, ServiceRefused) as error:
            logger.warning("%s", error)

    async def _change_of_mind(self) -> None:
        """Wait until somebody installs the agent, or may have allowed it a token at Linear."""
        async with asyncio.TaskGroup() as group:
            waits = {
                group.create_task(self._installed.wait()),
                group.create_task(self._clock.sleep(REFUSED_SECONDS)),
            }
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()

    async def _identify(self) -> dict[str, Any]:
        viewer: dict[str, Any] = (await self._api.call("viewer"))["viewer"]
        if self._expected is not None and viewer["id"] != self._expected:
            raise ServiceRefused(
                self._name,
                "LINEAR_AGENT_ID is not the user of the token",
                "Remove it: it is looked up.",
            )
        if not viewer["app"]:
            raise ServiceRefused(
                self._name,
                "the token is a person's, not an agent's",
                "Install the application with actor=app and take the token that this gives.",
            )
        self.identity = Identity(viewer["id"], viewer["organization"]["id"])
        self.refused = ""
        self._identified.set()
        return viewer
