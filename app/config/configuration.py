"""The whole configuration, as a value: what every other part is built from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from app.config.agents import AgentEntry
from app.config.credentials import Credentials, key_parts
from app.config.fields import Account, is_loopback
from app.config.roster import AgentsSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much the bridge does at once, how long, and at what cost."""

    max_turns: int = 4
    """How many turns run at once."""
    max_processes: int = 16
    """How many agent processes live at once."""
    idle_minutes: float = 30
    """After how long an idle session is parked."""
    turn_minutes: float = 120
    """After how long a turn is stopped."""
    ask_hours: float = 168
    """How long an ask can be answered."""
    grace_seconds: float = 20
    """How long running work may go on after the bridge is told to stop."""
    budget_usd: float | None = None
    """How many dollars may be spent; no limit when absent."""
    retention_days: int = 30
    """How long history is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryTerms:
    """What is set for one repository."""

    variables: Mapping[str, SecretStr] = field(repr=False)
    """What its setup and the agents in it get."""
    clone: Literal["full", "shallow", "partial"]
    """How much of it is fetched at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that was configured, frozen at start."""

    agents: Mapping[str, AgentEntry]
    """The agents in their order."""
    default_agent: str
    """The agent that plain settings and plain webhook paths belong to."""
    agents_source: AgentsSource
    """What named the agents."""
    services: tuple[str, ...]
    """The services that run."""
    credentials: Credentials
    """What each agent has on each service that runs, by service and agent."""
    allowed_users: tuple[Account, ...]
    """People who may trigger agents beside those the platforms allow."""
    allowed_users_only: bool
    """Whether nobody else may."""
    allowed_bots: tuple[Account, ...]
    """Bots that may trigger agents."""
    untagged_replies: Literal["mention", "latest", "all"]
    """Who answers a message that names nobody where several agents are."""
    verbosity: Literal["quiet", "normal", "full"] | None
    """How much places show; None leaves it to the kind of place."""
    place_context: int
    """How many earlier messages an agent is shown at its first turn in a place."""
    limits: Limits
    """How much, how long, at what cost."""
    database_url: str
    """Where the store lives."""
    data_dir: Path
    """Where the bridge keeps everything."""
    host: str
    """The address to listen on."""
    port: int
    """The port to listen on."""
    base_url: str
    """Under which address the bridge is reached, without a slash at the end."""
    admin_token: SecretStr | None
    """What opens API and page, if it was given; else `ensure_secrets` makes it."""
    secret_key: SecretStr | None
    """What signs and encrypts, if it was given; else `ensure_secrets` makes it."""
    log_level: Literal["debug", "info", "warning", "error", "critical"]
    """From which weight on log lines are written."""
    log_format: Literal["console", "json"]
    """How log lines are written."""
    slack_api_url: str
    """Where Slack's methods are called; ends in /api/."""
    github_api_url: str
    """Where GitHub's REST API is called."""
    github_git_url: str
    """Where repositories are fetched from and pushed to."""
    github_web_url: str
    """Where people read GitHub."""
    linear_api_url: str
    """The whole address of Linear's GraphQL API."""
    github_repo: str | None
    """The repository of places that have no other."""
    slack_channel_repos: Mapping[str, str]
    """The repository of each Slack channel."""
    slack_channel_prompts: Mapping[str, str]
    """What agents are told in addition in each Slack channel."""
    linear_team_repos: Mapping[str, str]
    """The repository of each Linear team."""
    path: str
    """PATH, as it was passed in."""
    home: Path
    """The person's HOME."""
    surroundings: Mapping[str, str] = field(repr=False)
    """The environment, without what is secret: children get some of it."""
    dotenv: Path | None
    """The `.env` that was read, if any."""
    keys: Mapping[str, Mapping[str, SecretStr]] = field(repr=False)
    """The variables of each agent."""
    repositories: Mapping[str, RepositoryTerms] = field(repr=False)
    """What is set for single repositories, by the name that settings give them."""
    secret_names: tuple[str, ...] = field(repr=False)
    """Names under which a secret may stand in the environment."""
    secrets: frozenset[SecretStr] = field(repr=False)
    """Every secret that was given."""
    secret_files: tuple[Path, ...] = field(repr=False)
    """The files that secrets were read from: no agent may see them."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches the bridge."""
        return is_loopback(self.host)

    @property
    def isolation_required(self) -> bool:
        """Whether others reach the agents, so that none may run unisolated unless asked for."""
        return not self.loopback or set(self.services) != {"web"}

    def model_keys(self, agent: str) -> dict[str, SecretStr]:
        """Return the variables that an agent gets, and no other agent's."""
        return dict(self.keys[agent])

    def secret_values(self) -> Iterator[str]:
        """Yield every secret that was given, for the vault."""
        for secret in self.secrets:
            yield from key_parts(secret.get_secret_value())
