"""The settings of the whole process: one field each, with its default and its check.

The names are fixed; users, compose files and documentation rely on them. Credentials, which every
agent has of its own, stand in `credentials`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from app.config.fields import (
    Address,
    ApiFolder,
    Bots,
    FolderAddress,
    Host,
    LogFormat,
    LogLevel,
    People,
    Prompts,
    Repositories,
    Repository,
    Services,
    at_least,
    nothing,
)
from app.config.problems import first_problem
from app.config.sources import Sources
from app.errors import ConfigurationError

SHORTEST_ADMIN_TOKEN = 16
# 256 bits, written in any of the usual ways, have at least as many characters.
SHORTEST_SECRET_KEY = 32

# A year is longer than anybody means; it catches numbers given in the wrong unit.
_YEAR_IN_MINUTES = 365 * 24 * 60


class Settings(BaseSettings):
    """What stands in the environment or in `.env`, checked one by one."""

    model_config = SettingsConfigDict(
        alias_generator=str.upper,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        str_strip_whitespace=True,
    )

    agents_json: SecretStr | None = None
    """The agents, as a JSON object of name and entry; secret, since entries may hold keys."""
    acp_agent_command: str | None = None
    """The command of a single agent, used when AGENTS_JSON is absent."""
    enabled_services: Services | None = None
    """Which services run; by default those with credentials, and web."""

    slack_api_url: ApiFolder = "https://slack.com/api/"
    """Where Slack's methods are called."""
    github_api_url: FolderAddress = "https://api.github.com"
    """Where GitHub's REST API is called."""
    github_git_url: FolderAddress = "https://github.com"
    """Where repositories are fetched from and pushed to."""
    github_web_url: FolderAddress = "https://github.com"
    """Where people read GitHub."""
    linear_api_url: Address = "https://api.linear.app/graphql"
    """The whole address of Linear's GraphQL API."""

    github_repo: Repository | None = None
    """The repository of places that have no other."""
    slack_channel_repos: Repositories = Field(default_factory=nothing)
    """The repository of each Slack channel, by channel id."""
    slack_channel_prompts: Prompts = Field(default_factory=nothing)
    """What agents are told in addition in each Slack channel, by channel id."""
    linear_team_repos: Repositories = Field(default_factory=nothing)
    """The repository of each Linear team, by team key."""

    repositories_json: SecretStr | None = None
    """What is set for single repositories, as a JSON object; secret, since it may hold keys."""

    allowed_users: People = ()
    """People who may trigger agents beside those the platform's own rights allow."""
    allowed_users_only: bool = False
    """Whether nobody but ALLOWED_USERS may trigger agents."""
    allowed_bots: Bots = ()
    """Bots that may trigger agents, by id."""

    untagged_replies: Literal["mention", "latest", "all"] = "mention"
    """Who answers a message that names nobody where several agents are."""
    verbosity: Literal["quiet", "normal", "full"] | None = None
    """How much places show; by default each kind of place has its own."""
    place_context: Annotated[int, Field(ge=0, le=500)] = 30
    """How many earlier messages of a place an agent is shown at its first turn there."""

    max_turns: Annotated[int, Field(ge=1, le=1000)] = 4
    """How many turns run at once."""
    max_processes: Annotated[int, Field(ge=1, le=1000)] = 16
    """How many agent processes live at once."""
    idle_minutes: Annotated[float, Field(gt=0, le=_YEAR_IN_MINUTES)] = 30
    """After how long an idle session is parked."""
    turn_minutes: Annotated[float, Field(gt=0, le=_YEAR_IN_MINUTES)] = 120
    """After how long a turn is stopped."""
    ask_hours: Annotated[float, Field(gt=0, le=365 * 24)] = 168
    """How long an ask can be answered."""
    grace_seconds: Annotated[float, Field(ge=0, le=3600)] = 20
    """How long running work may go on after the bridge is told to stop."""
    budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How many dollars one session may spend, where agents report their cost; else no limit."""
    retention_days: Annotated[int, Field(ge=7, le=36500)] = 30
    """How long history is kept; never less than the week in which replays are recognised."""

    database_url: str | None = None
    """Where the store lives; by default a SQLite file in DATA_DIR."""
    data_dir: str | None = None
    """Where the bridge keeps everything; by default ~/.local/share/agent-bridge."""
    host: Host = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    """The port to listen on."""
    bridge_base_url: Address | None = None
    """Under which address people and platforms reach the bridge."""
    bridge_admin_token: Annotated[SecretStr, at_least(SHORTEST_ADMIN_TOKEN)] | None = None
    """What opens the API and the page; made once into DATA_DIR when absent."""
    bridge_secret_key: Annotated[SecretStr, at_least(SHORTEST_SECRET_KEY)] | None = None
    """What signs cookies and encrypts stored secrets; made once into DATA_DIR when absent."""
    log_level: LogLevel = "info"
    """From which weight on log lines are written."""
    log_format: LogFormat = "console"
    """How log lines are written."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values only from the caller: `sources` has read environment and file already."""
        return (init_settings,)


NAMES: tuple[str, ...] = tuple(name.upper() for name in Settings.model_fields)
SECRET_NAMES = frozenset(
    {"AGENTS_JSON", "REPOSITORIES_JSON", "BRIDGE_ADMIN_TOKEN", "BRIDGE_SECRET_KEY"}
)


def read_settings(sources: Sources) -> Settings:
    """Check the settings of the process.

    Raises:
        ConfigurationError: for the first one that is wrong.
    """
    values = {
        name: value
        for name in NAMES
        if (value := (sources.secret if name in SECRET_NAMES else sources.text)(name)) is not None
    }
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    raise ConfigurationError(str(where[0]), problem, remedy)
