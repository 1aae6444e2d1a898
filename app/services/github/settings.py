"""The settings of GitHub: one App per agent, and where GitHub is."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, SecretStr

from app.config import ServiceCredentials, ServiceSettings
from app.config.fields import PEM, FolderAddress, WebhookSecret, comma_list, matching

NAME = "github"

_Pem = matching(PEM, "is not a private key", "Use the whole PEM file from GitHub.")
_Number = matching(r"[0-9]+", "is not a number", "Copy the number from the App's settings.")
_Login = matching(
    r"[A-Za-z0-9][A-Za-z0-9-]*(\[bot\])?", "is not a login", "Write it as my-app[bot]."
)
_InstalledBy = matching(
    r"[0-9]+|[A-Za-z0-9][A-Za-z0-9-]*",
    "names neither an account nor an installation",
    "Write a list of account logins and installation numbers, such as acme,4711.",
)


def _real_line_breaks(value: object) -> object:
    """Undo the escaping that puts a key on one line."""
    if not isinstance(value, str):
        return value
    return value.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\r\n", "\n").strip() + "\n"


class GithubCredentials(ServiceCredentials):
    """One GitHub App."""

    service = NAME
    identity = ("app_id", "private_key", "bot_login")
    hook_secrets = ("webhook_secret", "webhook_secret_before")

    app_id: Annotated[str, _Number]
    """The App's number."""
    private_key: Annotated[SecretStr, BeforeValidator(_real_line_breaks), _Pem]
    """What the App signs itself in with, as PEM with real line breaks."""
    webhook_secret: WebhookSecret
    """What GitHub signs deliveries with."""
    webhook_secret_before: WebhookSecret | None = None
    """The previous secret, still accepted while it is being changed."""
    bot_login: Annotated[str, _Login] | None = None
    """The login of its bot; looked up when absent."""
    installation_id: Annotated[str, _Number] | None = None
    """The only installation to work for; looked up when absent."""
    installations: Annotated[
        tuple[Annotated[str, _InstalledBy], ...], BeforeValidator(comma_list)
    ] = ()
    """Further installations to work for, besides those of the App's owner."""


class GithubSettings(ServiceSettings):
    """Where GitHub is."""

    service = NAME

    api_url: FolderAddress = "https://api.github.com"
    """Where GitHub's REST API is called."""
    web_url: FolderAddress = "https://github.com"
    """Where people read GitHub."""
