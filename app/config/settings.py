"""Defines the settings of the whole process and of single repositories, each with its default.

The names are fixed; users, compose files and documentation rely on them. What belongs to one
service, its credentials among them, is in that service's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import SettingsConfigDict

from app.config.fields import (
    Accounts,
    Address,
    BridgeRole,
    Environment,
    FolderAddress,
    Host,
    LogFormat,
    LogLevel,
    Networks,
    ProxyAddress,
    Repository,
    Variables,
    Words,
    Zone,
    at_least,
    is_repository,
    json_object,
    nothing,
)
from app.config.sources import GivenSettings, did_you_mean, first_problem
from app.errors import ConfigurationError

SHORTEST_ADMIN_TOKEN = 16
# 256 bits, written in any of the usual ways, have at least as many characters.
SHORTEST_SECRET_KEY = 32

# No real value is longer than a year; this catches numbers in the wrong unit.
_YEAR_IN_MINUTES = 365 * 24 * 60


class Settings(GivenSettings):
    """The settings from the environment or `.env`, checked one by one."""

    model_config = SettingsConfigDict(str_strip_whitespace=True)

    agents_json: SecretStr | None = None
    """The agents, as a JSON object of name and entry; secret, since entries may hold keys."""
    acp_agent_command: str | None = None
    """The command of a single agent, used when AGENTS_JSON is absent."""
    enabled_services: Words | None = None
    """Which services run; by default those with credentials, and web."""

    # Names that begin with GITHUB_: they say where `owner/name` is, for every service.
    git_url: FolderAddress = Field("https://github.com", alias="GITHUB_GIT_URL")
    """Where repositories are fetched from and pushed to."""
    default_repository: Repository | None = Field(None, alias="GITHUB_REPO")
    """The repository of places that have no other."""

    repositories_json: SecretStr | None = None
    """What is set for single repositories, as a JSON object; secret, since it may hold keys."""

    allowed_users: Accounts = ()
    """People who may trigger agents in addition to those the platform's own rights allow."""
    allowed_users_only: bool = False
    """Whether only ALLOWED_USERS may trigger agents."""
    allowed_bots: Accounts = ()
    """Bots that may trigger agents, by id."""

    untagged_replies: Literal["mention", "latest", "all"] = "mention"
    """Which agents answer a message that mentions none of the several there."""
    verbosity: Literal["quiet", "normal", "full"] | None = None
    """How much places show; by default each kind of place has its own."""
    place_context: Annotated[int, Field(ge=0, le=500)] = 30
    """How many earlier messages of a place an agent sees at its first turn there."""
    time_zone: Zone | None = None
    """The time zone of schedules that name none; by default this machine's."""

    max_turns: Annotated[int, Field(ge=1, le=1000)] = 4
    """How many turns this process runs at once."""
    max_turns_total: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """How many turns run at once on all members together; by default as many as each allows."""
    max_processes: Annotated[int, Field(ge=1, le=1000)] = 16
    """How many agent processes live at once."""
    idle_minutes: Annotated[float, Field(gt=0, le=_YEAR_IN_MINUTES)] = 30
    """After how long an idle session is parked."""
    turn_minutes: Annotated[float, Field(gt=0, le=_YEAR_IN_MINUTES)] = 120
    """After how long a turn is stopped."""
    agent_turns_per_hour: Annotated[int, Field(ge=0, le=10_000)] = 20
    """How many turns an agent may begin by itself in a session within an hour."""
    agent_turns_per_session: Annotated[int, Field(ge=0, le=100_000)] = 100
    """How many it may begin one after another; a person's message resets both counts."""
    background_minutes: Annotated[float, Field(gt=0, le=_YEAR_IN_MINUTES)] = 120
    """How long an agent may have work running between turns before people are asked."""
    ask_hours: Annotated[float, Field(gt=0, le=365 * 24)] = 168
    """How long an ask can be answered."""
    ask_remind_minutes: Annotated[float, Field(ge=0, le=_YEAR_IN_MINUTES)] = 10
    """After how long people are reminded of an ask that nobody answered; 0: never."""
    grace_seconds: Annotated[float, Field(ge=0, le=3600)] = 20
    """How long running work may continue after the bridge is told to stop."""
    budget_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """How many dollars one session may spend, if agents report their cost; else no limit."""
    budget_person_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """What one person may spend a day, where agents report their cost; else no limit."""
    budget_place_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The same for one place: a channel, a repository, a team."""
    budget_agent_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The same for one agent."""
    budget_day_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The same for everything together."""
    retention_days: Annotated[int, Field(ge=7, le=36500)] = 30
    """How long history is kept; at least the week in which replays are recognised."""
    retention_events_days: Annotated[int, Field(ge=7, le=36500)] | None = None
    """How long raw events and what was decided on them are kept; RETENTION_DAYS when absent."""
    retention_posts_days: Annotated[int, Field(ge=1, le=36500)] | None = None
    """How long the record of what was posted is kept; RETENTION_DAYS when absent."""
    retention_files_days: Annotated[int, Field(ge=1, le=36500)] | None = None
    """How long files that agents made are kept; RETENTION_DAYS when absent."""
    retention_work_days: Annotated[int, Field(ge=1, le=36500)] | None = None
    """How long clones and homes that no session used are kept; RETENTION_DAYS when absent."""
    retention_conversations_days: Annotated[int, Field(ge=1, le=36500)] | None = None
    """How long whole conversations that no one used are kept; kept for ever when absent."""
    retention_memory_days: Annotated[int, Field(ge=1, le=36500)] | None = None
    """How long agents' daily logs are kept; kept for ever when absent."""
    disk_free_mb: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """What must stay free on DATA_DIR's disk; 1024, or a tenth of a smaller disk, if absent."""
    disk_warn_mb: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Below which free space room is made and people are warned; twice that if absent."""
    delegation_depth: Annotated[int, Field(ge=0, le=3)] = 1
    """How deep agents may ask agents: 1 means that an agent that was asked asks no other one."""
    delegations_per_turn: Annotated[int, Field(ge=0, le=100)] = 4
    """How many agents one turn may ask."""
    delegations_per_tree: Annotated[int, Field(ge=0, le=1000)] = 12
    """How many turns one message of a person may lead to, over all agents."""
    delegations_per_hour: Annotated[int, Field(ge=0, le=10_000)] = 30
    """How many turns agents may start in one place per hour; a person's message resets it."""
    delegation_minutes: Annotated[float, Field(gt=0, le=_YEAR_IN_MINUTES)] = 120
    """How long all that one message led to may take."""
    delegation_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """What all that one message led to may cost, where agents report it; else no limit."""
    review_rounds: Annotated[int, Field(ge=1, le=10)] = 2
    """How often an author answers one reviewer before people decide."""

    database_url: SecretStr | None = None
    """The store's address: PostgreSQL, or a SQLite file, by default the one in DATA_DIR."""
    role: BridgeRole = "all"
    """What this process does, where several share a PostgreSQL."""
    lease_seconds: Annotated[float, Field(ge=3, le=3600)] = 10
    """After how long without a sign of it a member is taken to be gone."""
    data_dir: str | None = None
    """Where the bridge keeps everything; by default ~/.local/share/agent-bridge."""
    shared_dir: str | None = None
    """What the bridges of several machines share: by default DATA_DIR."""
    host: Host = "127.0.0.1"
    """The address to listen on."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    """The port to listen on."""
    hooks_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """The port that receives webhooks and nothing else; by default PORT receives them."""
    trusted_proxies: Networks = ()
    """The reverse proxies that are believed whom they speak for, by address or network."""
    bridge_base_url: Address | None = None
    """The address at which people and platforms reach the bridge."""
    allow_plain_http: bool = False
    """Whether that address may be plain http even if other machines use it."""
    http_proxy: ProxyAddress | None = None
    """The proxy for http addresses."""
    https_proxy: ProxyAddress | None = None
    """The proxy for https addresses."""
    no_proxy: str | None = None
    """The hosts that are reached without a proxy."""
    ssl_cert_file: str | None = None
    """A file with all certificate authorities to trust; by default each program's own."""
    bridge_admin_token: Annotated[SecretStr, at_least(SHORTEST_ADMIN_TOKEN)] | None = None
    """The token for the API and the page; generated once into DATA_DIR when absent."""
    bridge_secret_key: Annotated[SecretStr, at_least(SHORTEST_SECRET_KEY)] | None = None
    """The key that signs cookies and encrypts stored secrets; generated once when absent."""
    traces_url: Address | None = Field(None, alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """The OpenTelemetry collector that gets traces; by default there are none."""
    traces_headers: SecretStr | None = Field(None, alias="OTEL_EXPORTER_OTLP_HEADERS")
    """What each request to the collector carries, as name=value,name=value."""
    log_level: LogLevel = "info"
    """The lowest level of log lines to write."""
    log_format: LogFormat = "console"
    """How log lines are written."""


NAMES = tuple(Settings.names().values())


_REPOSITORIES = "REPOSITORIES_JSON"
Fetch = Literal["full", "shallow", "partial"]


class RepositoryEntry(BaseModel):
    """One repository as it was configured."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)

    env: Environment = Field(default_factory=nothing)
    """Variables that its setup and the agents in it get with these values."""
    env_passthrough: Variables = ()
    """Variables that they get from the settings."""
    clone: Fetch = "full"
    """How much of it the bridge fetches at once."""


_REPOSITORY_KEYS = tuple(RepositoryEntry.model_fields)


def read_repositories(setting: SecretStr | None) -> Mapping[str, RepositoryEntry]:
    """Check what is set for single repositories.

    Raises:
        ConfigurationError: for the first thing that is wrong.
    """
    if setting is None:
        return nothing()
    try:
        entries = json_object(setting.get_secret_value())
    except PydanticCustomError as error:
        words = error.context or {}
    else:
        return MappingProxyType(
            {
                name: _entry(name, raw, number)
                for number, (name, raw) in enumerate(entries.items(), 1)
            }
        )
    raise ConfigurationError(_REPOSITORIES, words["problem"], words["remedy"])


def _entry(name: str, raw: Any, number: int) -> RepositoryEntry:
    # Do not repeat a malformed name: it may be a value in the wrong place.
    if not is_repository(name):
        raise ConfigurationError(
            _REPOSITORIES,
            f"the name of repository {number} is not valid",
            "Write owner/name, or the address or folder as in the other settings.",
        )
    if not isinstance(raw, dict):
        raise ConfigurationError(
            _REPOSITORIES,
            f"repository {number} is not an object",
            'Write "owner/name": {"env": {...}}.',
        )
    unknown = next((key for key in raw if key not in _REPOSITORY_KEYS), None)
    if unknown is not None:
        remedy = did_you_mean(
            unknown, _REPOSITORY_KEYS, f"The keys are {', '.join(_REPOSITORY_KEYS)}."
        )
        raise ConfigurationError(_REPOSITORIES, f"repository {number} has an unknown key", remedy)
    try:
        entry = RepositoryEntry.model_validate(raw)
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    else:
        return _check_fit(entry, name, number)
    key = next((f": {part}" for part in where if part in _REPOSITORY_KEYS), "")
    raise ConfigurationError(_REPOSITORIES, f"repository {number}{key} {problem}", remedy)


def _check_fit(entry: RepositoryEntry, name: str, number: int) -> RepositoryEntry:
    if "PATH" in {*entry.env, *entry.env_passthrough}:
        raise ConfigurationError(
            _REPOSITORIES,
            f"repository {number} sets PATH",
            "Remove it: agents keep their own PATH.",
        )
    if name.startswith("folder:") and entry.clone != "full":
        raise ConfigurationError(
            _REPOSITORIES, f"repository {number} is a folder, which is not cloned", "Remove clone."
        )
    return entry
