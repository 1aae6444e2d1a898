"""Who the bridge is on Slack: its apps' identities, and the seal on what its buttons carry."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from itsdangerous import BadData, URLSafeSerializer

from app.core.keys import adapter_name
from app.errors import DeliveryUnreadable, ServiceRefused
from app.services.slack.api import SlackApi, SlackRefused

COLLEAGUES_SECONDS: Final = 10.0
"""How long to wait for the names of the other agents before listening without them."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What Slack calls one agent."""

    user: str
    """The id by which people mention it."""
    bot: str
    team: str
    home: str
    """The address of the workspace."""
    scopes: frozenset[str]


async def identify(api: SlackApi, agent: str, suffix: str) -> Identity:
    """Ask Slack who the owner of a bot token is.

    Raises:
        ServiceRefused: nobody, any more.
        PostError: Slack cannot be asked now.
    """
    try:
        answer = await api.call("auth.test")
    except SlackRefused as error:
        raise ServiceRefused(
            adapter_name("slack", agent),
            f"Slack does not accept its bot token ({error.error})",
            f"Copy the Bot User OAuth Token of its app into SLACK_BOT_TOKEN{suffix} again.",
        ) from error
    return Identity(
        user=answer["user_id"],
        bot=answer.get("bot_id", ""),
        team=answer.get("team_id", ""),
        home=answer.get("url", ""),
        scopes=frozenset(filter(None, answer["scopes"].replace(" ", "").split(","))),
    )


class Colleagues:
    """All agents on Slack, by the ids that people mention; shared by all adapters."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._complete = asyncio.Event()
        self.agents: dict[str, str] = {}
        """Who is meant by an id."""

    def add(self, agent: str, identity: Identity) -> None:
        """Note whom an id means."""
        self.agents[identity.user] = agent
        if len(self.agents) >= self._expected:
            self._complete.set()

    async def gathered(self) -> None:
        """Wait a while until all are known: a mention must not go past somebody."""
        with suppress(TimeoutError):
            async with asyncio.timeout(COLLEAGUES_SECONDS):
                await self._complete.wait()


class Seal:
    """Signs what a button carries, so that only the bridge's own buttons decide anything."""

    def __init__(self, secret_key: str) -> None:
        self._serializer = URLSafeSerializer(secret_key, salt="slack button")

    def close(self, *values: str | int) -> str:
        """Write values into a button."""
        return str(self._serializer.dumps(list(values)))

    def open(self, sealed: str) -> list[Any]:
        """Read them back.

        Raises:
            DeliveryUnreadable: the bridge did not write this.
        """
        try:
            values: list[Any] = self._serializer.loads(sealed)
        except BadData as error:
            raise DeliveryUnreadable("this button is not one of this bridge") from error
        return values
