"""Holds the whole configuration as one frozen value, reads and checks it.

`load` reads only what it is given, and returns nothing unsafe or incomplete.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import unquote

from pydantic import SecretStr

from app.config.agents import AgentConfig
from app.config.fields import LOCAL_HOSTS, PAGE, PEM, is_loopback
from app.config.names import Names, find_secrets, is_secret
from app.config.network import outbound_variables, proxy_passwords
from app.config.records import AgentRecord
from app.config.roster import AgentDiscovery, AgentsSource, KnownAgent, gather
from app.config.safety import (
    check_access,
    check_commands,
    check_homes,
    check_role,
    check_secrets,
    check_transport,
    data_folder,
    find_database_passwords,
    is_open_to_others,
    read_database_url,
    shared_folder,
)
from app.config.services import (
    Credentials,
    KnownService,
    ServiceCredentials,
    ServiceSettings,
    check_names,
    choose_services,
    read_credentials,
)
from app.config.settings import RepositoryEntry, Settings, read_repositories
from app.config.sources import FILE, Sources
from app.errors import NotFound

S = TypeVar("S", bound=ServiceSettings)
C = TypeVar("C", bound=ServiceCredentials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that was configured, frozen at start."""

    settings: Settings = field(repr=False)
    """The settings of the process; what follows from them is in the other fields."""
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
    database_url: str = field(repr=False)
    """Where the store lives; it may hold a password."""
    data_dir: Path
    """Where this machine's bridge keeps what is its own; everything, if there is one machine."""
    shared_dir: Path
    """Where the bridges of all machines keep what they share; DATA_DIR, if there is one machine."""
    base_url: str
    """The address people reach the bridge at, without a trailing slash."""
    service_settings: Mapping[str, ServiceSettings]
    """What is set for each service as a whole, by its name."""
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
    repositories: Mapping[str, RepositoryEntry] = field(repr=False)
    """What is set for single repositories, by the name that settings give them; `env` has all
    variables for work there."""
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
        return is_loopback(self.settings.host)

    @property
    def own_ports(self) -> frozenset[int]:
        """The ports that the bridge listens on."""
        return frozenset(filter(None, (self.settings.port, self.settings.hooks_port)))

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
    def local_url(self) -> str:
        """The address of the bridge for programs on this machine."""
        host = self.settings.host
        if host in LOCAL_HOSTS:
            host = "[::1]" if host == "::1" else "127.0.0.1"
        return f"http://{host}:{self.settings.port}"

    @property
    def bridge_id(self) -> str:
        """The id of the bridge on this DATA_DIR, for the markers of its processes."""
        return hashlib.sha256(str(self.data_dir.resolve()).encode()).hexdigest()[:16]

    @property
    def installation_id(self) -> str:
        """The id of all bridges that share a key, for other machines; the key cannot be found."""
        key = self.settings.bridge_secret_key
        secret = str(self.data_dir.resolve()) if key is None else key.get_secret_value()
        return hashlib.sha256(f"installation\0{secret}".encode()).hexdigest()[:32]

    @property
    def database_file(self) -> Path | None:
        """The file of the store; None if it is on a server."""
        address = self.database_url.removeprefix("sqlite:///")
        return None if address == self.database_url else Path(unquote(address))

    def secret_values(self) -> Iterator[str]:
        """Yield every secret that was given, for the vault."""
        for text in (secret.get_secret_value() for secret in self.secrets):
            if not re.fullmatch(PEM, text, re.DOTALL):
                yield text
                continue
            # Of a private key, each line of its body is hidden.
            yield from (each for each in text.splitlines() if each and not each.startswith("-----"))


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
) -> ConfigurationReader:
    """Make a reader of what is given.

    Raises:
        ConfigurationError: the settings file cannot be read.
    """
    return ConfigurationReader(
        Sources.read(environ, dotenv), known, services, dotenv, home, executable
    )


@dataclass(frozen=True, slots=True)
class ConfigurationReader:
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
        return self._read(records)

    def read_settings_alone(self) -> Configuration:
        """Read the settings before the store is known: they may name agents that only it has.

        Raises:
            ConfigurationError: for the first thing that is wrong or unsafe.
        """
        return self._read(None)

    def read_agents_again(self) -> ConfigurationReader:
        """Return a reader that reads the file with the agents of the settings again."""
        return replace(self, sources=self.sources.reread("AGENTS_JSON"))

    def _read(self, records: Sequence[AgentRecord] | None) -> Configuration:
        is_whole, records = records is not None, records or ()
        sources, services, environ = self.sources, self.services, self.sources.environ
        settings = Settings.read(sources)
        check_names(settings, services)
        path = environ.get("PATH", os.defpath)
        around = AgentDiscovery(self.known, path, self.home, self.executable)
        roster = gather(settings, around, records)
        repositories = read_repositories(settings.repositories_json)
        names = Names(roster, self.known, repositories, services)
        names.check(sources, agents_known=is_whole)
        service_settings = {each.name: each.settings.read(sources) for each in services}
        credentials = read_credentials(sources, roster, services, records)
        wanted = choose_services(settings, credentials, services, agents_known=is_whole)
        # A demo agent that no setting names speaks as no platform's bot.
        silent = {agent.id for agent in roster.agents.values() if agent.source == "demo"}
        usable = {owner: each for owner, each in credentials.items() if owner[1] not in silent}
        running = wanted
        if len(usable) < len(credentials):
            served = {service for service, _ in usable}
            running = (*(name for name in wanted if name in served), PAGE)
        if is_open_to_others(settings, running):
            roster = roster.isolate_found()
        check_access(settings, roster, running)
        check_secrets(settings, credentials)
        check_commands(roster, path)
        data_dir = data_folder(settings, self.home)
        shared_dir = shared_folder(settings, self.home, data_dir)
        check_homes(roster, data_dir, shared_dir)
        database_url = read_database_url(settings.database_url, data_dir)
        check_role(settings.role, database_url)
        base_url = _base_url(settings)
        check_transport(settings, base_url)
        secret_names = names.secrets() if is_whole else names.secrets_of_any_agent(sources)
        agents = {agent.id: agent for agent in roster.agents.values()}
        keys = {agent: _keys(entry, names, sources) for agent, entry in agents.items()}
        return Configuration(
            reader=self,
            settings=settings,
            agents=MappingProxyType(agents),
            default_agent=roster.agents[roster.default].id,
            plain_agent=roster.agents[roster.plain].id,
            agents_source=roster.source,
            services=running,
            unserved=tuple(service for service in wanted if service not in running),
            service_settings=MappingProxyType(service_settings),
            credentials=MappingProxyType(
                {owner: each for owner, each in usable.items() if owner[0] in running}
            ),
            database_url=database_url,
            data_dir=data_dir,
            shared_dir=shared_dir,
            base_url=base_url,
            path=path,
            surroundings=MappingProxyType(
                {name: value for name, value in environ.items() if name not in secret_names}
                | outbound_variables(settings, environ)
            ),
            home=self.home,
            dotenv=self.dotenv,
            keys=MappingProxyType(keys),
            repositories=MappingProxyType(
                {name: _with_variables(entry, sources) for name, entry in repositories.items()}
            ),
            secret_names=secret_names,
            secret_files=tuple(
                Path(file) for name in secret_names if (file := sources.text(name + FILE))
            ),
            secrets=frozenset(
                (
                    *_bridge_secrets(settings),
                    *(secret for each in credentials.values() for secret in each.secrets()),
                    *(secret for each in service_settings.values() for secret in each.secrets()),
                    *_read_given(sources, filter(is_secret, names.variables)).values(),
                    *_secrets_among(*keys.values(), *(each.env for each in repositories.values())),
                )
            ),
        )


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
        # The token of one machine goes to no other: a plain one belongs to the default agent.
        if value is None and (agent.default or not agent.url):
            value = read(name)
        if value is not None:
            found[name] = SecretStr(value)
    return MappingProxyType(found | dict(agent.env))


def _with_variables(entry: RepositoryEntry, sources: Sources) -> RepositoryEntry:
    """Collect the variables for work in a repository; its own table wins."""
    found = _read_given(sources, entry.env_passthrough)
    return entry.model_copy(update={"env": MappingProxyType(found | dict(entry.env))})


def _bridge_secrets(settings: Settings) -> Iterator[SecretStr]:
    """Yield what opens the bridge, its database, its proxies and its collector."""
    own = (settings.bridge_admin_token, settings.bridge_secret_key)
    yield from filter(None, (*own, settings.traces_headers))
    yield from find_database_passwords(settings.database_url)
    yield from proxy_passwords(settings)


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
