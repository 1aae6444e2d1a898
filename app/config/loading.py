"""Reads and checks the whole configuration; returns nothing unsafe or incomplete.

`load` reads only what it is given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType

from pydantic import SecretStr

from app.config.agents import AgentConfig
from app.config.bucket import read_bucket
from app.config.configuration import Configuration, Limits, RepositoryTerms
from app.config.credentials import Credentials, read_credentials
from app.config.database import check_role, find_database_passwords, read_database_url
from app.config.fields import PAGE
from app.config.location import Surrounding, checkout, find_settings_file
from app.config.names import Names, is_secret
from app.config.outbound import OUTBOUND, outbound_variables, proxy_passwords
from app.config.records import AgentRecord
from app.config.repositories import RepositoryEntry, read_repositories
from app.config.roster import KnownAgent, Roster, Surroundings, gather
from app.config.safety import (
    check_access,
    check_commands,
    check_homes,
    check_secrets,
    check_transport,
    data_folder,
    is_open_to_others,
    shared_folder,
)
from app.config.secret_values import find_secrets
from app.config.services import KnownService
from app.config.settings import Settings, read_service_settings, read_settings
from app.config.sources import FILE, Sources
from app.errors import ConfigurationError

AGENTS = "AGENTS_JSON"

_AS_GIVEN = (
    "allowed_users",
    "allowed_users_only",
    "allowed_bots",
    "untagged_replies",
    "verbosity",
    "place_context",
    "time_zone",
    "role",
    "host",
    "port",
    "hooks_port",
    "trusted_proxies",
    "traces_url",
    "traces_headers",
    "log_level",
    "log_format",
    "git_url",
    "default_repository",
)


def load(
    environ: Mapping[str, str],
    *,
    known: Sequence[KnownAgent] = (),
    services: Sequence[KnownService] = (),
    dotenv: Path | None = None,
    home: Path,
    executable: Path = Path(sys.executable),
) -> Configuration:
    """Read and check a whole configuration.

    Raises:
        ConfigurationError: for the first thing that is wrong or unsafe.
    """
    return make_reader(environ, known, services, dotenv, home, executable).read()


def make_reader(
    environ: Mapping[str, str],
    known: Sequence[KnownAgent],
    services: Sequence[KnownService],
    dotenv: Path | None,
    home: Path,
    executable: Path = Path(sys.executable),
) -> Reader:
    """Make a reader of what is given.

    Raises:
        ConfigurationError: the settings file cannot be read.
    """
    return Reader(Sources.read(environ, dotenv), known, services, dotenv, home, executable)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads a configuration from what was given at start, also later with other agents."""

    sources: Sources = field(repr=False)
    known: Sequence[KnownAgent]
    services: Sequence[KnownService]
    dotenv: Path | None
    home: Path
    executable: Path

    def read(self, records: Sequence[AgentRecord] = ()) -> Configuration:
        """Read and check the configuration, with the agents that the store has.

        Raises:
            ConfigurationError: for the first thing that is wrong or unsafe.
        """
        return _read(self, records)

    def read_settings_alone(self) -> Configuration:
        """Read the settings before the store is known: they may name agents that only it has.

        Raises:
            ConfigurationError: for the first thing that is wrong or unsafe.
        """
        return _read(self, None)

    def read_agents_again(self) -> Reader:
        """Return a reader that reads the file with the agents of the settings again."""
        return replace(self, sources=self.sources.reread(AGENTS))


def _read(reader: Reader, records: Sequence[AgentRecord] | None) -> Configuration:
    is_whole, records = records is not None, records or ()
    sources, known, services = reader.sources, reader.known, reader.services
    environ, home, dotenv = sources.environ, reader.home, reader.dotenv
    settings = read_settings(sources, services)
    path = environ.get("PATH", os.defpath)
    roster = gather(settings, Surroundings(known, path, home, reader.executable), records)
    repositories = read_repositories(settings.repositories_json)
    names = Names(roster, known, repositories, services)
    names.check(sources, agents_known=is_whole)
    service_settings = read_service_settings(sources, services)
    credentials = read_credentials(sources, roster, services, records)
    wanted = _running(settings, credentials, services, agents_known=is_whole)
    usable = _usable(credentials, roster)
    running = wanted
    if len(usable) < len(credentials):
        served = {service for service, _ in usable}
        running = (*(name for name in wanted if name in served), PAGE)
    if is_open_to_others(settings, running):
        roster = roster.isolate_found()
    check_access(settings, roster, running)
    check_secrets(settings, credentials)
    check_commands(roster, path)
    data_dir = data_folder(settings, home)
    shared_dir = shared_folder(settings, home, data_dir)
    check_homes(roster, data_dir, shared_dir)
    database_url = read_database_url(settings.database_url, data_dir)
    check_role(settings.role, database_url)
    base_url = _base_url(settings)
    check_transport(settings, base_url)
    secret_names = names.secrets() if is_whole else names.secrets_of_any_agent(sources)
    agents = {agent.id: agent for agent in roster.agents.values()}
    keys = {agent: _keys(entry, names, sources) for agent, entry in agents.items()}
    return Configuration(
        reader=reader,
        agents=MappingProxyType(agents),
        default_agent=roster.agents[roster.default].id,
        plain_agent=roster.agents[roster.plain].id,
        agents_source=roster.source,
        services=running,
        unserved=tuple(service for service in wanted if service not in running),
        service_settings=service_settings,
        credentials=MappingProxyType(
            {owner: value for owner, value in usable.items() if owner[0] in running}
        ),
        limits=Limits(**{part.name: getattr(settings, part.name) for part in fields(Limits)}),
        database_url=database_url,
        data_dir=data_dir,
        shared_dir=shared_dir,
        bucket=read_bucket(settings),
        base_url=base_url,
        has_base_url=settings.bridge_base_url is not None,
        admin_token=settings.bridge_admin_token,
        secret_key=settings.bridge_secret_key,
        path=path,
        surroundings=MappingProxyType(
            {name: value for name, value in environ.items() if name not in secret_names}
            | outbound_variables(settings, environ)
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
                *filter(None, (settings.s3_secret_access_key,)),
                *find_database_passwords(settings.database_url),
                *filter(None, (settings.traces_headers,)),
                *proxy_passwords(settings),
                *(secret for owned in credentials.values() for secret in owned.secrets()),
                *(secret for each in service_settings.values() for secret in each.secrets()),
                *_read_given(sources, filter(is_secret, names.variables)).values(),
                *_secrets_among(*keys.values(), *(entry.env for entry in repositories.values())),
            )
        ),
        **{name: getattr(settings, name) for name in _AS_GIVEN},
    )


def from_process(
    known: Sequence[KnownAgent] = (),
    services: Sequence[KnownService] = (),
    given: Mapping[str, str] = MappingProxyType({}),
) -> Configuration:
    """Read the configuration of this process: what is given, its environment, its settings file.

    Raises:
        ConfigurationError: for the first thing that is wrong or unsafe.
    """
    environ, home = {**os.environ, **given}, Path.home()
    around = Surrounding(home, Path.cwd(), checkout(), os.geteuid())
    dotenv = find_settings_file(environ, around)
    read = make_reader(environ, known, services, dotenv, home).read_settings_alone()
    share_outbound(read)
    return read


def share_outbound(configuration: Configuration) -> None:
    """Tell the libraries that call platforms how to reach them: they read the environment."""
    given = configuration.surroundings
    os.environ.update({name: given[name] for name in OUTBOUND if name in given})


def forget_process_secrets(configuration: Configuration) -> None:
    """Take the secrets out of this process's environment, so that no child inherits one."""
    for name in configuration.secret_names:
        os.environ.pop(name, None)


def _usable(credentials: Credentials, roster: Roster) -> Credentials:
    """Leave out those of a demo agent that no setting names: it speaks as no platform's bot."""
    silent = {agent.id for agent in roster.agents.values() if agent.source == "demo"}
    return {owner: value for owner, value in credentials.items() if owner[1] not in silent}


def _running(
    settings: Settings,
    credentials: Credentials,
    services: Iterable[KnownService],
    *,
    agents_known: bool,
) -> tuple[str, ...]:
    able = {service for service, _ in credentials} | {PAGE}
    if settings.enabled_services is None:
        return (*(service.name for service in services if service.name in able), PAGE)
    unable = next((name for name in settings.enabled_services if name not in able), None)
    if unable is not None and not agents_known:
        return tuple(name for name in settings.enabled_services if name in able)
    if unable is not None:
        raise ConfigurationError(
            "ENABLED_SERVICES",
            f"names {unable}, but no agent has credentials for it",
            f"Add its {unable.upper()}_ settings, or remove {unable}.",
        )
    return settings.enabled_services


def _base_url(settings: Settings) -> str:
    if settings.bridge_base_url is not None:
        return settings.bridge_base_url.rstrip("/")
    host = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104 - read, not bound
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _keys(agent: AgentConfig, names: Names, sources: Sources) -> Mapping[str, SecretStr]:
    """Collect an agent's variables: by suffix, else plain; its own table wins."""
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
    """Collect the variables for work in a repository; its own table wins."""
    found = _read_given(sources, entry.env_passthrough)
    return RepositoryTerms(variables=MappingProxyType(found | dict(entry.env)), clone=entry.clone)


def _read_given(sources: Sources, names: Iterable[str]) -> dict[str, SecretStr]:
    """Read the variables that were given, of these names."""
    read = {name: sources.secret(name) if is_secret(name) else sources.text(name) for name in names}
    return {name: SecretStr(value) for name, value in read.items() if value is not None}


def _secrets_among(*tables: Mapping[str, SecretStr]) -> Iterator[SecretStr]:
    """Pick the secret values, used or not."""
    for table in tables:
        for name, value in table.items():
            secrets = find_secrets(name, value.get_secret_value())
            yield from (value,) if is_secret(name) else map(SecretStr, secrets)
