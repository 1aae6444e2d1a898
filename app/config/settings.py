"""Defines the settings of the whole process: one field each, with its default and its check.

The names are fixed; users, compose files and documentation rely on them. What belongs to one
service, its credentials among them, is in that service's folder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from app.config.fields import (
    Address,
    Bots,
    BridgeRole,
    FolderAddress,
    Host,
    LogFormat,
    LogLevel,
    Networks,
    People,
    ProxyAddress,
    Repository,
    Services,
    Zone,
    at_least,
)
from app.config.problems import first_problem
from app.config.services import KnownService, ServiceSettings
from app.config.sources import Sources
from app.errors import ConfigurationError

SHORTEST_ADMIN_TOKEN = 16
# 256 bits, written in any of the usual ways, have at least as many characters.
SHORTEST_SECRET_KEY = 32

# No real value is longer than a year; this catches numbers in the wrong unit.
_YEAR_IN_MINUTES = 365 * 24 * 60


class Settings(BaseModel):
    """The settings from the environment or `.env`, checked one by one."""

    model_config = ConfigDict(
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

    # Names that begin with GITHUB_: they say where `owner/name` is, for every service.
    git_url: FolderAddress = Field("https://github.com", alias="GITHUB_GIT_URL")
    """Where repositories are fetched from and pushed to."""
    default_repository: Repository | None = Field(None, alias="GITHUB_REPO")
    """The repository of places that have no other."""

    repositories_json: SecretStr | None = None
    """What is set for single repositories, as a JSON object; secret, since it may hold keys."""

    allowed_users: People = ()
    """People who may trigger agents in addition to those the platform's own rights allow."""
    allowed_users_only: bool = False
    """Whether only ALLOWED_USERS may trigger agents."""
    allowed_bots: Bots = ()
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
    ask_hours: Annotated[float, Field(gt=0, le=365 * 24)] = 168
    """How long an ask can be answered."""
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


NAMES: tuple[str, ...] = tuple(
    field.alias or name.upper() for name, field in Settings.model_fields.items()
)
SECRET_NAMES = frozenset(
    {
        "AGENTS_JSON",
        "REPOSITORIES_JSON",
        "BRIDGE_ADMIN_TOKEN",
        "BRIDGE_SECRET_KEY",
        "DATABASE_URL",
        "OTEL_EXPORTER_OTLP_HEADERS",
    }
)


def read_settings(sources: Sources, services: Sequence[KnownService]) -> Settings:
    """Check the settings of the process.

    Raises:
        ConfigurationError: for the first one that is wrong.
    """
    values = _read_given(sources, NAMES, SECRET_NAMES)
    try:
        return Settings.model_validate(values, context={"services": services})
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    raise ConfigurationError(str(where[0]), problem, remedy)


def read_service_settings(
    sources: Sources, services: Sequence[KnownService]
) -> Mapping[str, ServiceSettings]:
    """Check the settings of each service.

    Raises:
        ConfigurationError: for the first one that is wrong.
    """
    return MappingProxyType(
        {service.name: _service_settings(sources, service.settings) for service in services}
    )


def _service_settings(sources: Sources, kind: type[ServiceSettings]) -> ServiceSettings:
    names = kind.names()
    given = _read_given(sources, names.values(), kind.secret_names())
    try:
        return kind.model_validate(
            {field: given[name] for field, name in names.items() if name in given}
        )
    except ValidationError as error:
        where, problem, remedy = first_problem(error)
    raise ConfigurationError(names[str(where[0])], problem, remedy)


def _read_given(sources: Sources, names: Iterable[str], secret: Collection[str]) -> dict[str, str]:
    read = {name: (sources.secret if name in secret else sources.text)(name) for name in names}
    return {name: value for name, value in read.items() if value is not None}
