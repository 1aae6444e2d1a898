"""Reads the agents of the store, read-only, for commands that do their work without a bridge."""

from __future__ import annotations

from contextlib import suppress

from app.agents.enrolling import open_registry
from app.agents.registry import Registry
from app.config import Configuration, find_secret_key
from app.config.sealing import Sealer
from app.errors import ConfigurationError
from app.store.guarding import Guard
from app.store.reading import reading, revision
from app.store.schema import HEAD_REVISION
from app.vault import Vault


def read_registry(configuration: Configuration) -> Registry:
    """Return every agent there is or was under its id, as a bridge that starts now has them.

    Raises:
        StoreUnavailable: the store cannot be read.
        ConfigurationError: a stored entry cannot be opened, or does not fit the settings.
    """
    # An older store has no agents of its own, and a start upgrades it.
    if revision(configuration.database_url) != HEAD_REVISION:
        return open_registry(configuration, ())
    guard = make_guard(configuration, Vault(configuration.secret_values()))
    with reading(configuration.database_url, guard) as stores:
        records = () if stores is None else stores.agents.records()
    return open_registry(configuration, records)


def make_guard(configuration: Configuration, vault: Vault) -> Guard | None:
    """Make what opens sealed values of the store; None without the key."""
    with suppress(ConfigurationError):
        if (key := find_secret_key(configuration)) is not None:
            return Guard(vault, lambda: Sealer(key))
    return None
