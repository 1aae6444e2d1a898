"""Identifies the bridge's Slack apps, and signs the values of its buttons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from app.errors import DeliveryUnreadable, ServiceRefused
from app.model.keys import adapter_name
from app.services.common.people import PlatformAgents
from app.services.slack.api import SlackApi, SlackRefused


@dataclass(frozen=True, slots=True)
class SlackIdentity:
    """One agent's ids on Slack."""

    user: str
    """The id by which people mention it."""
    bot: str
    team: str
    home: str
    """The address of the workspace."""
    scopes: frozenset[str]


async def identify(api: SlackApi, agent: str, suffix: str) -> SlackIdentity:
    """Ask Slack which app a bot token belongs to.

    Raises:
        ServiceRefused: Slack rejects the token.
        PostError: Slack does not answer now.
    """
    try:
        answer = await api.call("auth.test")
    except SlackRefused as error:
        raise ServiceRefused(
            adapter_name("slack", agent),
            f"Slack rejected its bot token ({error.error})",
            f"Copy its app's Bot User OAuth Token into SLACK_BOT_TOKEN{suffix} again.",
        ) from error
    return SlackIdentity(
        user=answer["user_id"],
        bot=answer.get("bot_id", ""),
        team=answer.get("team_id", ""),
        home=answer.get("url", ""),
        scopes=frozenset(filter(None, answer["scopes"].replace(" ", "").split(","))),
    )


class Colleagues(PlatformAgents[SlackIdentity]):
    """All agents on Slack, shared by all adapters."""

    def __init__(self, agents: Iterable[str], absent: Mapping[str, str] | None = None) -> None:
        """Know the agents that are set up, and the user ids of those that were."""
        super().__init__(agents)
        self.agents = {user: agent for agent, user in (absent or {}).items()}
        """Agents by the user ids that people mention."""

    def add(self, agent: str, identity: SlackIdentity) -> None:
        """Set an agent's identity."""
        self.agents[identity.user] = agent
        super().add(agent, identity)


class Seal:
    """Signs button values, so that only the bridge's own buttons decide anything."""

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
            raise DeliveryUnreadable("this bridge did not make this button") from error
        return values
