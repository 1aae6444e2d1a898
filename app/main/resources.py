"""Opens what a bridge is built on: DATA_DIR lock, secrets, store, agents, and their adapters."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from app import logs
from app.agents.checks import Admission, note_isolation
from app.agents.files import AgentFiles
from app.agents.isolation import isolate_all
from app.agents.network import read_hosts
from app.agents.registry import Registry, label, open_registry
from app.children.limits import make_undumpable, raise_file_limit
from app.children.network.dialing import Outside
from app.clock import Clock, SystemClock
from app.config import BridgeSecrets, Configuration, ensure_secrets, forget_process_secrets
from app.core.runtime import Presences
from app.errors import ConfigurationError
from app.metrics import Metrics
from app.model.delegation import SERVICE
from app.services import PAGE, find_area, registered_services
from app.services.service import BuildContext
from app.services.web.adapter import AgentsAdapter, WebAdapter
from app.signals import ALONE, Signals
from app.store.database import Database, check_not_moved, locked
from app.store.guarding import Guard, make_sealer, put_on_guard
from app.store.sealed import recognizes
from app.store.stores import Stores
from app.vault import Vault

if TYPE_CHECKING:
    from app.traces import Tracer

Wrap = Callable[[Stores], Stores]

NAME_FILE = "member"
HOST_CHARACTERS = 24
"""Of a member's name: with the rest it fits into the name of a channel of PostgreSQL."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one bridge."""

    registry: Registry
    secrets: BridgeSecrets
    vault: Vault
    database: Database
    stores: Stores
    admission: Admission
    clock: Clock
    metrics: Metrics
    files: AgentFiles
    signals: Signals = ALONE
    """The other members of the installation."""
    outside: Outside | None = None
    """What agents with their own network connect to, if not the internet."""

    @property
    def configuration(self) -> Configuration:
        """The configuration as it is now: its agents may change."""
        return self.registry.configuration


@contextmanager
def open_resources(
    configuration: Configuration,
    *,
    clock: Clock | None = None,
    wrap: Wrap | None = None,
    outside: Outside | None = None,
) -> Iterator[Resources]:
    """Open the resources: lock, secrets, isolations, store.

    `outside` is what agents with their own network connect to, if not the internet.

    Raises:
        DataDirInUse: another bridge holds DATA_DIR.
        ConfigurationError: an agent cannot be isolated as required, or the database is sealed
            with another key.
        StoreUnavailable: the database cannot be used.
    """
    clock = clock or SystemClock()
    with locked(configuration.data_dir):
        if configuration.database_file is not None:
            check_not_moved(configuration.data_dir)
        secrets = ensure_secrets(configuration)
        vault = Vault([*configuration.secret_values(), *secrets.values()])
        logs.configure(configuration.settings.log_level, configuration.settings.log_format, vault)
        make_undumpable()
        raise_file_limit()
        tracer = _open_tracer(configuration, secrets)
        database = Database(configuration.database_url)
        put_on_guard(
            database.engine.dialect, Guard(vault, partial(make_sealer, secrets.secret_key))
        )
        database.open()
        try:
            if configuration.database_file is None:
                _check_key(database, secrets)
            stores = Stores.on(database, clock.now, find_area)
            files = AgentFiles(configuration.shared_dir, vault)
            registry = open_registry(configuration, stores.agents.records())
            registry.replace(label(registry.configuration, files))
            vault.register(*registry.configuration.secret_values())
            forget_process_secrets(registry.configuration)
            isolations = isolate_all(registry.configuration, outside)
            noted = note_isolation(registry.configuration, registry.records, isolations)
            registry.replace(registry.configuration, noted, isolations)
            metrics = Metrics(tracer)
            database.writer.on_commit = partial(metrics.observe, "commit_seconds")
            yield Resources(
                registry=registry,
                secrets=secrets,
                vault=vault,
                database=database,
                stores=wrap(stores) if wrap is not None else stores,
                admission=Admission(registry),
                clock=clock,
                metrics=metrics,
                files=files,
                signals=open_signals(configuration, database, clock),
                outside=outside,
            )
        finally:
            if tracer is not None:
                tracer.close()
            database.close()


def _open_tracer(configuration: Configuration, secrets: BridgeSecrets) -> Tracer | None:
    """Open the way to a collector of traces, if there is one.

    Raises:
        ConfigurationError: what it needs is not installed.
    """
    if configuration.settings.traces_url is None:
        return None
    try:
        from app.traces import Tracer  # noqa: PLC0415 - 0.2 s, and it comes with an extra
    except ImportError as error:
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            f"needs a package that is not installed: {error.name}",
            "Install the extra: pip install 'agent-bridge[traces]'. Or remove the setting.",
        ) from error
    return Tracer(
        configuration.settings.traces_url, configuration.settings.traces_headers, secrets.secret_key
    )


def _check_key(database: Database, secrets: BridgeSecrets) -> None:
    """Refuse a key that other bridges on this database could not read with."""
    if not recognizes(database, make_sealer(secrets.secret_key)):
        raise ConfigurationError(
            "BRIDGE_SECRET_KEY",
            "the database is sealed with another key",
            "Give all bridges on one database the same BRIDGE_SECRET_KEY, or the same SHARED_DIR.",
        )


def read_name(data_dir: Path) -> str:
    """Return the name of the member that works in a DATA_DIR; it stays the same for good."""
    file = data_dir / NAME_FILE
    name = file.read_text().strip() if file.exists() else ""
    if not name:
        name = f"{socket.gethostname()[:HOST_CHARACTERS]}-{secrets.token_hex(4)}"
        file.write_text(name)
    return name


def open_signals(configuration: Configuration, database: Database, clock: Clock) -> Signals:
    """Return what reaches the other members; on SQLite there are none."""
    if configuration.database_file is not None:
        return ALONE
    # The import takes 0.2 s, and only PostgreSQL needs it.
    from app.store.database.signals import Notifications  # noqa: PLC0415

    name = read_name(configuration.data_dir)
    return Notifications(database, configuration.database_url, name, clock)


def presence(base: Resources, services: Collection[str] | None = None) -> Presences:
    """Build all agents' adapters on these services, and the forge if one has it."""
    running = base.configuration.services if services is None else services
    context = BuildContext(
        configuration=base.configuration,
        secret_key=base.secrets.secret_key,
        vault=base.vault,
        clock=base.clock,
        stores=base.stores,
        pictures={
            name: tuple(read_hosts(entry)) for name, entry in base.configuration.agents.items()
        },
        removed=tuple(base.registry.removed()),
    )
    built = {
        each.name: each.build(context) for each in registered_services() if each.name in running
    }
    forges = [(each.forge, name) for name, each in built.items() if each.forge is not None]
    on_page = map(WebAdapter, base.configuration.agents) if PAGE in running else ()
    apart = map(AgentsAdapter, base.configuration.agents) if SERVICE in running else ()
    adapters = (*on_page, *chain.from_iterable(each.adapters for each in built.values()), *apart)
    return Presences(adapters, *forges[0]) if forges else Presences(adapters)
