"""Reads and checks the whole configuration; nothing unsafe or half of a thing comes out.

`load` is a pure reading of what it is given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from pydantic import SecretStr

from app.config.agents import AgentEntry
from app.config.configuration import Configuration, Limits, RepositoryTerms
from app.config.credentials import Credentials, read_credentials
from app.config.fields import SERVICES, is_loopback
from app.config.names import Names, is_secret
from app.config.repositories import RepositoryEntry, read_repositories
from app.config.roster import KnownAgent, Roster, Surroundings, gather
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
    keys = {name: _keys(agent, names, sources) for name, agent in roster.agents.items()}
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
        keys=MappingProxyType(keys),
        repositories=MappingProxyType(
            {name: _repository(entry, sources) for name, entry in repositories.items()}
        ),
        secret_names=secret_names,
        secret_files=tuple(
            Path(file) for name in secret_names if (file := sources.text(name + FILE))
        ),
        secrets=frozenset(
            (
                *filter(None, (settings.bridge_admin_token, settings.bridge_secret_key)),
                *(secret for owned in credentials.values() for secret in owned.secrets()),
                *_given(sources, filter(is_secret, names.variables)).values(),
                *_secrets_among(*keys.values(), *(entry.env for entry in repositories.values())),
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
    found = _given(sources, entry.env_passthrough)
    return RepositoryTerms(variables=MappingProxyType(found | dict(entry.env)), clone=entry.clone)


def _given(sources: Sources, names: Iterable[str]) -> dict[str, SecretStr]:
    """Read those of these variables that were given."""
    read = {name: sources.secret(name) if is_secret(name) else sources.text(name) for name in names}
    return {name: SecretStr(value) for name, value in read.items() if value is not None}


def _secrets_among(*tables: Mapping[str, SecretStr]) -> Iterator[SecretStr]:
    """Pick what is secret, whether or not anybody uses it."""
    for table in tables:
        yield from (value for name, value in table.items() if is_secret(name))
