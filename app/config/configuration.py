"""The whole configuration, checked: what every other part is built from.

`load` is a pure reading of what it is given; an unsafe configuration never comes out of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import quote

from pydantic import SecretStr

from app.config.agents import AgentEntry
from app.config.credentials import Credentials, key_parts, read_credentials
from app.config.fields import SERVICES, Account, is_loopback
from app.config.names import Names, is_secret
from app.config.repositories import RepositoryEntry, read_repositories
from app.config.roster import AgentsSource, KnownAgent, Roster, Surroundings, gather
from app.config.settings import Settings, read_settings
from app.config.sources import FILE, Sources
from app.errors import ConfigurationError

_DATABASE_FILE = "bridge.db"

_AS_GIVEN = (
    "allowed_users",
    "allowed_users_only",
    "allowed_bots",
    "untagged_replies",
    "verbosity",
    "place_context",
    "host",
    "port",
    "log_level",
    "log_format",
    "slack_api_url",
    "github_api_url",
    "github_git_url",
    "github_web_url",
    "linear_api_url",
    "github_repo",
    "slack_channel_repos",
    "slack_channel_prompts",
    "linear_team_repos",
)


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


def load(
    environ: Mapping[str, str],
    *,
    known: Sequence[KnownAgent] = (),
    dotenv: Path | None = None,
    home: Path,
    executable: Path = Path(sys.executable),
) -> Configuration:
    """Read and check a whole configuration.

    Raises:
        ConfigurationError: for the first thing that is wrong or unsafe.
    """
    sources = Sources.read(environ, dotenv)
    settings = read_settings(sources)
    path = environ.get("PATH", os.defpath)
    roster = gather(settings, Surroundings(known, path, home, executable))
    repositories = read_repositories(settings.repositories_json)
    names = Names(roster, known, repositories)
    names.check(sources)
    credentials = read_credentials(sources, roster)
    services = _services(settings, credentials)
    _check_access(settings, roster, services)
    data_dir = _data_dir(settings, home)
    secret_names = names.secrets()
    return Configuration(
        agents=MappingProxyType(dict(roster.agents)),
        default_agent=roster.default,
        agents_source=roster.source,
        services=services,
        credentials=MappingProxyType(
            {owner: value for owner, value in credentials.items() if owner[0] in services}
        ),
        limits=Limits(**{part.name: getattr(settings, part.name) for part in fields(Limits)}),
        database_url=_database_url(settings, data_dir),
        data_dir=data_dir,
        base_url=_base_url(settings),
        admin_token=settings.bridge_admin_token,
        secret_key=settings.bridge_secret_key,
        path=path,
        surroundings=MappingProxyType(
            {name: value for name, value in environ.items() if name not in secret_names}
        ),
        home=home,
        dotenv=dotenv,
        keys=MappingProxyType(
            {name: _keys(agent, names, sources) for name, agent in roster.agents.items()}
        ),
        repositories=MappingProxyType(
            {name: _repository(entry, sources) for name, entry in repositories.items()}
        ),
        secret_names=secret_names,
        secret_files=tuple(
            Path(file) for name in secret_names if (file := sources.text(name + FILE))
        ),
        secrets=frozenset(
            (
                *_secrets(sources, settings, credentials, roster, names),
                *_own_secrets(repositories.values()),
            )
        ),
        **{name: getattr(settings, name) for name in _AS_GIVEN},
    )


def from_process(known: Sequence[KnownAgent] = ()) -> Configuration:
    """Read the configuration of this process: its environment, and `.env` in its folder.

    Raises:
        ConfigurationError: for the first thing that is wrong or unsafe.
    """
    dotenv = Path.cwd() / ".env"
    return load(
        dict(os.environ),
        known=known,
        dotenv=dotenv if dotenv.exists() else None,
        home=Path.home(),
    )


def forget_process_secrets(configuration: Configuration) -> None:
    """Take the secrets out of this process's environment, so that no child inherits one."""
    for name in configuration.secret_names:
        os.environ.pop(name, None)


def _services(settings: Settings, credentials: Credentials) -> tuple[str, ...]:
    able = {service for service, _ in credentials} | {"web"}
    if settings.enabled_services is None:
        return tuple(service for service in SERVICES if service in able)
    unable = next((name for name in settings.enabled_services if name not in able), None)
    if unable is not None:
        raise ConfigurationError(
            "ENABLED_SERVICES",
            f"names {unable}, for which no agent has credentials",
            f"Add the settings that begin with {unable.upper()}_, or leave {unable} out.",
        )
    return settings.enabled_services


def _check_access(settings: Settings, roster: Roster, services: tuple[str, ...]) -> None:
    public = not is_loopback(settings.host)
    if public and settings.bridge_admin_token is None:
        raise ConfigurationError(
            "HOST",
            "is open to other machines while BRIDGE_ADMIN_TOKEN is not set",
            "Set BRIDGE_ADMIN_TOKEN to a long random text, or HOST to 127.0.0.1.",
        )
    if settings.allowed_users_only and not settings.allowed_users:
        raise ConfigurationError(
            "ALLOWED_USERS_ONLY",
            "is true while ALLOWED_USERS names nobody",
            "Name people in ALLOWED_USERS, or remove it.",
        )
    beyond = [service for service in services if service != "web"] or ["a public HOST"] * public
    if beyond and roster.unasked:
        named = roster.source == "AGENTS_JSON"
        raise ConfigurationError(
            "AGENTS_JSON",
            f"agent {roster.unasked[0]!r} would run without isolation, open to {beyond[0]}",
            'Write "sandbox": "none" in its entry if that is meant, or "home": "own".'
            if named
            else 'Name it there: it is then isolated, or "sandbox": "none" says it need not be.',
        )


def _data_dir(settings: Settings, home: Path) -> Path:
    if settings.data_dir is None:
        path = home / ".local/share/agent-bridge"
    elif settings.data_dir.startswith("~/"):
        path = home / settings.data_dir.removeprefix("~/")
    else:
        path = Path(settings.data_dir)
    if not path.is_absolute():
        raise ConfigurationError(
            "DATA_DIR",
            "is not absolute, so it would be another folder wherever the bridge is started",
            "Write it from / or from ~/ on.",
        )
    # Agents see nothing of DATA_DIR: a folder that others live in cannot be it.
    if path == home or path in home.parents:
        raise ConfigurationError(
            "DATA_DIR", "is or holds your home", "Give the bridge a folder of its own."
        )
    if not _can_be_written(path):
        raise ConfigurationError(
            "DATA_DIR", "is not a folder that can be written", "Choose one that the bridge owns."
        )
    return path


def _can_be_written(path: Path) -> bool:
    try:
        existing = next(folder for folder in (path, *path.parents) if folder.exists())
    except OSError:
        return False
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def _database_url(settings: Settings, data_dir: Path) -> str:
    if settings.database_url is None:
        return f"sqlite:///{quote(str(data_dir / _DATABASE_FILE))}"
    if not settings.database_url.startswith("sqlite:"):
        raise ConfigurationError(
            "DATABASE_URL", "is not a SQLite address", "Only sqlite:////path is built so far."
        )
    if not settings.database_url.startswith("sqlite:////"):
        raise ConfigurationError(
            "DATABASE_URL",
            "does not name a file by its absolute path",
            "Write sqlite:////path, with four slashes, or remove it.",
        )
    return settings.database_url


def _base_url(settings: Settings) -> str:
    if settings.bridge_base_url is not None:
        return settings.bridge_base_url.rstrip("/")
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104 - read, not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _keys(agent: AgentEntry, names: Names, sources: Sources) -> Mapping[str, SecretStr]:
    """Collect what an agent receives: by suffix, else plain; its own table comes last."""
    found: dict[str, SecretStr] = {}
    for name in names.variables_of(agent):
        read = sources.secret if is_secret(name) else sources.text
        value = read(f"{name}__{agent.suffix}")
        if value is None:
            value = read(name)
        if value is not None:
            found[name] = SecretStr(value)
    return MappingProxyType(found | dict(agent.env))


def _repository(entry: RepositoryEntry, sources: Sources) -> RepositoryTerms:
    """Collect what whoever works in a repository receives; its own table comes last."""
    found: dict[str, SecretStr] = {}
    for name in entry.env_passthrough:
        value = sources.secret(name) if is_secret(name) else sources.text(name)
        if value is not None:
            found[name] = SecretStr(value)
    return RepositoryTerms(variables=MappingProxyType(found | dict(entry.env)), clone=entry.clone)


def _own_secrets(entries: Iterable[RepositoryEntry]) -> Iterator[SecretStr]:
    for entry in entries:
        yield from (value for name, value in entry.env.items() if is_secret(name))


def _secrets(
    sources: Sources, settings: Settings, credentials: Credentials, roster: Roster, names: Names
) -> Iterator[SecretStr]:
    """Collect every secret that was given, whether or not anybody uses it."""
    yield from filter(None, (settings.bridge_admin_token, settings.bridge_secret_key))
    for owned in credentials.values():
        yield from owned.secrets()
    for agent in roster.agents.values():
        yield from (
            value for name, value in _keys(agent, names, sources).items() if is_secret(name)
        )
    for name in names.variables:
        value = sources.secret(name) if is_secret(name) else None
        if value is not None:
            yield SecretStr(value)
