"""Slack settings: one app per agent, and the repositories and prompts of channels."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from app.config import ServiceCredentials, ServiceSettings
from app.config.fields import PlatformAddress, Prompts, Repositories, matching, nothing
from app.config.sources import refusal

NAME = "slack"

_BotToken = matching(
    r"xoxb-\S+", "is not a bot token", "Copy the token that begins with xoxb- from your Slack app."
)
_AppToken = matching(
    r"xapp-\S+",
    "is not an app-level token",
    "Copy the token that begins with xapp- from your Slack app's basic information.",
)


def _api_folder(text: str) -> str:
    if not text.endswith("/api/"):
        raise refusal("does not end in /api/", "Write it as https://slack.com/api/.")
    return text


class SlackCredentials(ServiceCredentials):
    """One Slack app."""

    service = NAME
    identity = ("bot_token", "app_token")

    bot_token: Annotated[SecretStr, _BotToken]
    """The token the app posts with."""
    app_token: Annotated[SecretStr, _AppToken]
    """The token that opens its socket."""


class SlackSettings(ServiceSettings):
    """Slack's address, and the settings of its channels."""

    service = NAME
    repositories_by_area = "channel_repos"
    prompts_by_area = "channel_prompts"

    api_url: Annotated[PlatformAddress, AfterValidator(_api_folder)] = "https://slack.com/api/"
    """Where Slack's methods are called."""
    channel_repos: Repositories = Field(default_factory=nothing)
    """The repository of each channel, by channel id."""
    channel_prompts: Prompts = Field(default_factory=nothing)
    """What agents are told in addition in each channel, by channel id."""
