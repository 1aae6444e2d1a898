"""The settings of Echo: a secret and a callback per agent."""

from __future__ import annotations

from app.config import ServiceCredentials, ServiceSettings
from app.config.fields import PlatformAddress, WebhookSecret

NAME = "echo"


class EchoCredentials(ServiceCredentials):
    """One agent behind a webhook."""

    service = NAME
    identity = ("callback_url",)
    hook_secrets = ("webhook_secret",)

    webhook_secret: WebhookSecret
    """What both directions are signed with."""
    callback_url: PlatformAddress
    """Where the agent's posts go."""


class EchoSettings(ServiceSettings):
    """Nothing is set for all agents."""

    service = NAME
