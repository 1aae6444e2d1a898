"""Holds the whole configuration as one frozen value, from which the other parts are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeVar
from urllib.parse import unquote

from pydantic import SecretStr

from app.config.agents import AgentConfig
from app.config.bucket import Bucket
from app.config.credentials import Credentials, key_parts
from app.config.fields import PAGE, Account, is_loopback
from app.config.records import AgentRecord
from app.config.roster import AgentsSource
from app.config.services import ServiceCredentials, ServiceSettings
from app.errors import NotFound

S = TypeVar("S", bound=ServiceSettings)
C = TypeVar("C", bound=ServiceCredentials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much the bridge does at once, how long, and at what cost."""

    max_turns: int = 4
    """How many turns this process runs at once."""
    max_turns_total: int | None = None
    """How many turns run at once on all members together; no limit when absent."""
    max_processes: int = 16
    """How many agent processes live at once."""
    idle_minutes: float = 30
    """After how long an idle session is parked."""
    turn_minutes: float = 120
    """After how long a turn is stopped."""
    ask_hours: float = 168
    """How long an ask can be answered."""
    grace_seconds: float = 20
    """How long running work may continue after the bridge is told to stop."""
    budget_usd: float | None = None
    """How many dollars may be spent; no limit when absent."""
    budget_person_usd: float | None = None
    """What one person may spend a day; no limit when absent."""
    budget_place_usd: float | None = None
    """What may be spent in one place a day; no limit when absent."""
    budget_agent_usd: float | None = None
    """What one agent may spend a day; no limit when absent."""
    budget_day_usd: float | None = None
    """What may be spent a day in total; no limit when absent."""
    retention_days: int = 30
    """How long history is kept."""
    retention_events_days: int | None = None
    """How long raw events and what was decided on them are kept; RETENTION_DAYS when absent."""
    retention_posts_days: int | None = None
    """How long the record of what was posted is kept; RETENTION_DAYS when absent."""
    retention_files_days: int | None = None
    """How long files that agents made are kept; RETENTION_DAYS when absent."""
    retention_work_days: int | None = None
    """How long clones and homes that no session used are kept; RETENTION_DAYS when absent."""
    retention_conversations_days: int | None = None
    """How long whole conversations that no one used are kept; kept for ever when absent."""
    retention_memory_days: int | None = None
    """How long agents' daily logs are kept; kept for ever when absent."""
    disk_free_mb: int | None = None
    """What must stay free on DATA_DIR's disk; 1024, or a tenth of a smaller disk, if absent."""
    disk_warn_mb: int | None = None
    """Below which free space room is made and people are warned; twice that if absent."""
    delegation_depth: int = 1
    """How deep agents may ask agents."""
    delegations_per_turn: int = 4
    """How many agents one turn may ask."""
    delegations_per_tree: int = 12
    """How many turns one message of a person may lead to, over all agents."""
    delegations_per_hour: int = 30
    """How many turns agents may start in one place per hour."""
    delegation_minutes: float = 120
    """How long all that one message led to may take."""
    delegation_usd: float | None = None
    """What all that one message led to may cost; no limit when absent."""
    review_rounds: int = 2
    """How often an author answers one reviewer before people decide."""
    lease_seconds: float = 10
    """After how long without a sign of it a member is taken to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryTerms:
    """What is set for one repository."""

    variables: Mapping[str, SecretStr] = field(repr=False)
    """The variables its setup and the agents in it get."""
    clone: Literal["full", "shallow", "partial"]
    """How much of it is fetched at once."""


class ConfigurationReader(Protocol):
    """Reads the configuration again, from what was given at start."""

    def read(self, records: Sequence[AgentRecord] = ()) -> Configuration:
        """Read and check the configuration, with the agents that the store has.

        Raises:
            ConfigurationError: for the first thing that is wrong or unsafe.
        """
        ...

    def read_agents_again(self) -> ConfigurationReader:
        """Return a reader that reads the file with the agents of the settings again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that was configured, frozen at start."""

    agents: Mapping[str, AgentConfig]
    """The agents in their order, by id."""
    default_agent: str
    """The agent that requests without a name are for, by id."""
    plain_agent: str
    """The agent that plain settings and plain webhook paths belong to, by id."""
    agents_source: AgentsSource
    """What named the agents of the settings."""
    services: tuple[str, ...]
    """The services that run."""
    unserved: tuple[str, ...]
    """The services that have credentials and do not run, because no agent is set."""
    credentials: Credentials
    """What each agent has on each service that runs, by service and agent's id."""
    allowed_users: tuple[Account, ...]
    """People who may trigger agents in addition to those the platforms allow."""
    allowed_users_only: bool
    """Whether only they may."""
    allowed_bots: tuple[Account, ...]
    """Bots that may trigger agents."""
    untagged_replies: Literal["mention", "latest", "all"]
    """Which agents answer a message that mentions none of the several there."""
    verbosity: Literal["quiet", "normal", "full"] | None
    """How much places show; None leaves it to the kind of place."""
    place_context: int
    """How many earlier messages an agent is shown at its first turn in a place."""
    time_zone: str | None
    """The time zone of schedules that name none; None: this machine's."""
    limits: Limits
    """How much, how long, at what cost."""
    database_url: str = field(repr=False)
    """Where the store lives; it may hold a password."""
    role: Literal["all", "front", "worker"]
    """What this process does, where several share a database."""
    data_dir: Path
    """Where this machine's bridge keeps what is its own; everything, if there is one machine."""
    shared_dir: Path
    """Where the bridges of all machines keep what they share; DATA_DIR, if there is one machine."""
    bucket: Bucket | None
    """Where the work of sessions is saved for other machines, if not in SHARED_DIR."""
    host: str
    """The address to listen on."""
    port: int
    """The port to listen on."""
    hooks_port: int | None
    """The port that receives webhooks and nothing else, if they have one."""
    trusted_proxies: tuple[str, ...]
    """The addresses and networks of reverse proxies whose X-Forwarded-For is believed."""
    base_url: str
    """The address people reach the bridge at, without a trailing slash."""
    has_base_url: bool
    """Whether BRIDGE_BASE_URL was set; else the address is made from HOST and PORT."""
    admin_token: SecretStr | None
    """The token for API and page, if given; else `ensure_secrets` generates it."""
    secret_key: SecretStr | None
    """The key that signs and encrypts, if given; else `ensure_secrets` generates it."""
    traces_url: str | None
    """The OpenTelemetry collector that gets traces, if there is one."""
    traces_headers: SecretStr | None
    """What each request to the collector carries."""
    log_level: Literal["debug", "info", "warning", "error", "critical"]
    """The lowest level of log lines to write."""
    log_format: Literal["console", "json"]
    """How log lines are written."""
    service_settings: Mapping[str, ServiceSettings]
    """What is set for each service as a whole, by its name."""
    git_url: str
    """Where repositories are fetched from and pushed to."""
    default_repository: str | None
    """The repository of places that have no other."""
    path: str
    """PATH, as it was passed in."""
    home: Path
    """The user's HOME."""
    surroundings: Mapping[str, str] = field(repr=False)
    """The environment without secrets: children get some of it."""
    dotenv: Path | None
    """The `.env` that was read, if any."""
    keys: Mapping[str, Mapping[str, SecretStr]] = field(repr=False)
    """The variables of each agent, by id."""
    repositories: Mapping[str, RepositoryTerms] = field(repr=False)
    """What is set for single repositories, by the name that settings give them."""
    secret_names: tuple[str, ...] = field(repr=False)
    """Names under which the environment may hold a secret."""
    secrets: frozenset[SecretStr] = field(repr=False)
    """Every secret that was given."""
    secret_files: tuple[Path, ...] = field(repr=False)
    """The files that secrets were read from: no agent may see them."""
    reader: ConfigurationReader = field(repr=False, compare=False)
    """Reads the same settings with other agents."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches the bridge."""
        return is_loopback(self.host)

    @property
    def own_ports(self) -> frozenset[int]:
        """The ports that the bridge listens on."""
        return frozenset(filter(None, (self.port, self.hooks_port)))

    @property
    def isolation_required(self) -> bool:
        """Whether others can reach the agents, so none runs without isolation unless configured."""
        return not self.loopback or set(self.services) != {PAGE}

    def settings_of(self, kind: type[S]) -> S:
        """Return what is set for the service that these settings belong to."""
        found = self.service_settings[kind.service]
        assert isinstance(found, kind)
        return found

    def credentials_of(self, kind: type[C]) -> dict[str, C]:
        """Return the credentials of a kind, by agent."""
        return {
            agent: given
            for (_, agent), given in self.credentials.items()
            if isinstance(given, kind)
        }

    def webhook_paths(self, service: str, agent: str) -> tuple[str, ...]:
        """List where an agent's webhooks arrive, the path to recommend first.

        The plain path belongs to the agent of the plain settings; a former name still leads here.
        """
        entry = self.agents[agent]
        taken = {each.name for each in self.agents.values()}
        names = (entry.name, *(name for name in entry.former if name not in taken))
        own = tuple(f"/webhooks/{service}/{name}" for name in names)
        return (f"/webhooks/{service}", *own) if agent == self.plain_agent else own

    def own_webhook_path(self, service: str, agent: str) -> str:
        """Return the webhook path with an agent's name in it."""
        return f"/webhooks/{service}/{self.agents[agent].name}"

    def find(self, name: str) -> AgentConfig:
        """Return the agent of that name.

        Raises:
            NotFound: there is no such agent.
        """
        found = next((each for each in self.agents.values() if each.name == name), None)
        if found is None:
            raise NotFound("agent", name)
        return found

    def model_keys(self, agent: str) -> dict[str, SecretStr]:
        """Return the variables that an agent gets, and no other agent's."""
        return dict(self.keys[agent])

    def moved(self, folder: Path) -> Configuration:
        """Return the same configuration with all files in one other folder."""
        return replace(self, data_dir=folder, shared_dir=folder)

    @property
    def database_file(self) -> Path | None:
        """The file of the store; None if it is on a server."""
        address = self.database_url.removeprefix("sqlite:///")
        return None if address == self.database_url else Path(unquote(address))

    def secret_values(self) -> Iterator[str]:
        """Yield every secret that was given, for the vault."""
        for secret in self.secrets:
            yield from key_parts(secret.get_secret_value())
