"""The credentials of each agent on each service: complete, well-formed, its own, or none.

Plain names belong to the default agent, suffixed ones to theirs. No agent ever gets another's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SecretStr,
    ValidationError,
)

from app.config.agents import AgentEntry
from app.config.fields import matching
from app.config.problems import first_problem, refusal
from app.config.roster import Roster
from app.config.sources import Sources
from app.errors import ConfigurationError

_PEM = r"\s*-----BEGIN [A-Z ]*PRIVATE KEY-----\s.+\s-----END [A-Z ]*PRIVATE KEY-----\s*"


def _real_line_breaks(value: object) -> object:
    """Undo the escaping that a key needs to stand on one line."""
    if not isinstance(value, str):
        return value
    return value.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\r\n", "\n").strip() + "\n"


def _untrimmed(secret: SecretStr) -> SecretStr:
    if secret.get_secret_value() != secret.get_secret_value().strip():
        raise refusal("begins or ends with white space", "Copy it again without the space.")
    return secret


_Token = matching(r"\S+", "has white space in it", "Copy it again without the space.")
_BotToken = matching(
    r"xoxb-\S+", "is not a bot token", "Copy the token that begins with xoxb- from your Slack app."
)
_AppToken = matching(
    r"xapp-\S+",
    "is not an app-level token",
    "Copy the token that begins with xapp- from your Slack app's basic information.",
)
_Pem = matching(_PEM, "is not a private key", "Give the whole PEM file that GitHub made.")
_Number = matching(r"[0-9]+", "is not a number", "Copy the number from the App's settings.")
_Login = matching(
    r"[A-Za-z0-9][A-Za-z0-9-]*(\[bot\])?", "is not a login", "Write it as my-app[bot]."
)
_WebhookSecret = Annotated[SecretStr, AfterValidator(_untrimmed)]


class ServiceCredentials(BaseModel):
    """What one agent needs to be somebody on one service."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    service: ClassVar[str]
    identity: ClassVar[tuple[str, ...]]

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return the plain name of the setting for each field."""
        return {field: f"{cls.service}_{field}".upper() for field in cls.model_fields}

    @classmethod
    def secret_names(cls) -> frozenset[str]:
        """Return the plain names of those settings that are secret."""
        names = cls.names()
        return frozenset(
            names[field]
            for field, about in cls.model_fields.items()
            if "SecretStr" in str(about.annotation)
        )

    @classmethod
    def missing(cls, given: Mapping[str, str]) -> str | None:
        """Return a field that is needed beside those given, or None."""
        needed = (field for field, about in cls.model_fields.items() if about.is_required())
        return next((field for field in needed if field not in given), None)

    def secrets(self) -> Iterator[SecretStr]:
        """Yield what must not be seen."""
        return (value for _, value in self if isinstance(value, SecretStr))


class SlackCredentials(ServiceCredentials):
    """One Slack app."""

    service = "slack"
    identity = ("bot_token", "app_token")

    bot_token: Annotated[SecretStr, _BotToken]
    """What the app posts with."""
    app_token: Annotated[SecretStr, _AppToken]
    """What opens its socket."""


class GithubCredentials(ServiceCredentials):
    """One GitHub App."""

    service = "github"
    identity = ("app_id", "private_key", "bot_login")

    app_id: Annotated[str, _Number]
    """The App's number."""
    private_key: Annotated[SecretStr, BeforeValidator(_real_line_breaks), _Pem]
    """What the App signs itself in with, as PEM with real line breaks."""
    webhook_secret: _WebhookSecret
    """What GitHub signs deliveries with."""
    webhook_secret_before: _WebhookSecret | None = None
    """The secret before that one, still taken while it is being changed."""
    bot_login: Annotated[str, _Login] | None = None
    """The login of its bot; looked up when absent."""
    installation_id: Annotated[str, _Number] | None = None
    """The installation to use; looked up when absent."""


class LinearCredentials(ServiceCredentials):
    """One Linear agent."""

    service = "linear"
    identity = ("access_token", "agent_id", "client_id")

    webhook_secret: _WebhookSecret
    """What Linear signs deliveries with."""
    access_token: Annotated[SecretStr, _Token] | None = None
    """A token made by hand; it expires."""
    agent_id: Annotated[str, _Token] | None = None
    """The agent's user id; looked up when absent."""
    client_id: Annotated[str, _Token] | None = None
    """The OAuth application, with which tokens are minted and renewed."""
    client_secret: Annotated[SecretStr, _Token] | None = None
    """The secret of the OAuth application."""

    @classmethod
    def missing(cls, given: Mapping[str, str]) -> str | None:
        """Return a field that is needed: a token, or what mints one."""
        if "client_id" in given or "client_secret" in given:
            needed = ["webhook_secret", "client_id", "client_secret"]
        else:
            needed = ["webhook_secret", "access_token"]
        return next((field for field in needed if field not in given), None)


KINDS: tuple[type[ServiceCredentials], ...] = (
    SlackCredentials,
    GithubCredentials,
    LinearCredentials,
)
NAMES: tuple[str, ...] = tuple(name for kind in KINDS for name in kind.names().values())
SECRET_NAMES: frozenset[str] = frozenset().union(*(kind.secret_names() for kind in KINDS))

Credentials = Mapping[tuple[str, str], ServiceCredentials]


def read_credentials(sources: Sources, roster: Roster) -> Credentials:
    """Read what every agent has on every service.

    Raises:
        ConfigurationError: some are missing, malformed, or shared by two agents.
    """
    found = {
        (kind.service, agent.name): credentials
        for kind in KINDS
        for agent in roster.agents.values()
        if (credentials := _of(kind, agent, sources)) is not None
    }
    _check_identities(found)
    return MappingProxyType(found)


def _of(
    kind: type[ServiceCredentials], agent: AgentEntry, sources: Sources
) -> ServiceCredentials | None:
    given: dict[str, str] = {}
    origin: dict[str, str] = {}
    for field, plain in kind.names().items():
        own = f"{plain}__{agent.suffix}"
        origin[field] = plain if agent.default else own
        for name in (own, plain) if agent.default else (own,):
            value = (sources.secret if plain in SECRET_NAMES else sources.text)(name)
            if value is not None:
                given[field], origin[field] = value, name
                break
    if not given:
        return None
    lacking = kind.missing(given)
    if lacking is not None:
        raise ConfigurationError(
            origin[lacking],
            f"is missing, while other {kind.service} credentials of agent {agent.name!r} are given",
            "Add it, or remove the others.",
        )
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    raise ConfigurationError(origin[str(where[0])], problem, remedy)


def _check_identities(found: Credentials) -> None:
    owners: dict[tuple[str, object], str] = {}
    for (service, agent), credentials in found.items():
        for field in credentials.identity:
            value = getattr(credentials, field)
            if value is None:
                continue
            name = credentials.names()[field]
            other = owners.setdefault((name, value), agent)
            if other != agent:
                raise ConfigurationError(
                    name,
                    f"is the same for the agents {other!r} and {agent!r}",
                    f"Give each agent an identity of its own on {service}.",
                )


def key_parts(secret: str) -> Iterator[str]:
    """Yield what must be hidden of a secret: of a private key each line of its body."""
    if not re.fullmatch(_PEM, secret, re.DOTALL):
        yield secret
        return
    yield from (line for line in secret.splitlines() if line and not line.startswith("-----"))
