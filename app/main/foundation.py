"""What a bridge stands on: the lock on DATA_DIR, its secrets, the shelters of agents, the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app import logs
from app.agents.isolation import Shelter, shelter_all
from app.children.hardening import make_undumpable
from app.config import (
    BridgeSecrets,
    Configuration,
    ensure_secrets,
    forget_process_secrets,
)
from app.core.clock import SystemClock
from app.core.ports import Clock
from app.server.metrics import Metrics
from app.store.database import Database, locked
from app.store.stores import Stores
from app.vault import Vault

Wrap = Callable[[Stores], Stores]


@dataclass(frozen=True, slots=True)
class Foundation:
    """What a bridge stands on."""

    configuration: Configuration
    secrets: BridgeSecrets
    vault: Vault
    database: Database
    stores: Stores
    shelters: dict[str, Shelter]
    clock: Clock
    metrics: Metrics


@contextmanager
def founded(
    configuration: Configuration, *, clock: Clock | None = None, wrap: Wrap | None = None
) -> Iterator[Foundation]:
    """Lay the foundation: lock, secrets, shelters, store.

    Raises:
        DataDirInUse: another bridge holds DATA_DIR.
        ConfigurationError: an agent cannot be isolated as it must be.
        StoreUnavailable: the database cannot be used.
    """
    clock = clock or SystemClock()
    with locked(configuration.data_dir):
        secrets = ensure_secrets(configuration)
        vault = Vault([*configuration.secret_values(), *secrets.values()])
        logs.configure(configuration.log_level, configuration.log_format, vault)
        make_undumpable()
        forget_process_secrets(configuration)
        shelters = shelter_all(configuration)
        database = Database(configuration.database_url)
        database.open()
        try:
            stores = Stores.on(database, clock.now)
            yield Foundation(
                configuration=configuration,
                secrets=secrets,
                vault=vault,
                database=database,
                stores=wrap(stores) if wrap is not None else stores,
                shelters=shelters,
                clock=clock,
                metrics=Metrics(),
            )
        finally:
            database.close()


def bridge_id(configuration: Configuration) -> str:
    """Name the bridge of a DATA_DIR in the markers of its processes."""
    return hashlib.sha256(str(configuration.data_dir.resolve()).encode()).hexdigest()[:16]
