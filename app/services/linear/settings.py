"""Linear settings: one OAuth application or token per agent, and the repositories of teams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, SecretStr

from app.config import ServiceCredentials, ServiceSettings
from app.config.fields import PlatformAddress, Repositories, Token, WebhookSecret, nothing

NAME = "linear"


class LinearCredentials(ServiceCredentials):
    """One Linear agent."""

    service = NAME
    identity = ("access_token", "agent_id", "client_id")
    hook_secrets = ("webhook_secret",)

    webhook_secret: WebhookSecret
    """The secret that Linear signs deliveries with."""
    access_token: Annotated[SecretStr, Token] | None = None
    """A token made by hand; it expires."""
    agent_id: Annotated[str, Token] | None = None
    """The agent's user id; looked up when absent."""
    client_id: Annotated[str, Token] | None = None
    """The OAuth application, with which tokens are minted and renewed."""
    client_secret: Annotated[SecretStr, Token] | None = None
    """The secret of the OAuth application."""

    @classmethod
    def missing(cls, given: Mapping[str, str]) -> str | None:
        """Return a required field that is missing: a token, or what mints one."""
        if "client_id" in given or "client_secret" in given:
            needed = ["webhook_secret", "client_id", "client_secret"]
        else:
            needed = ["webhook_secret", "access_token"]
        return next((field for field in needed if field not in given), None)


class LinearSettings(ServiceSettings):
    """Linear's address, and the settings of its teams."""

    service = NAME
    repositories_by_area = "team_repos"

    api_url: PlatformAddress = "https://api.linear.app/graphql"
    """The full address of Linear's GraphQL API."""
    team_repos: Repositories = Field(default_factory=nothing)
    """The repository of each team, by team key."""
    proactive: bool = False
    """Whether an agent opens a session on the issue that people name when they ask it elsewhere."""
