"""Reads the store, read-only, for commands that do their work without a bridge."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from app.agents.registry import Registry, open_registry
from app.config import Configuration, ensure_secrets, find_secret_key
from app.config.process import Sealer
from app.errors import ConfigurationError, NotFound
from app.model.conversations import ListFilter
from app.model.types import Session
from app.server.shapes import EntryOut, SessionDetail, SessionOut, state_on
from app.services.service import CheckContext
from app.store.database.schema import HEAD_REVISION
from app.store.guarding import Guard
from app.store.stores import reading, revision
from app.vault import Vault

ROWS: Final = 200
"""Rows per read."""


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


def make_vault(configuration: Configuration) -> Vault:
    """Collect the secrets that must not be shown."""
    vault = Vault(configuration.secret_values())
    if (configuration.shared_dir / "secrets").exists():
        with suppress(ConfigurationError):
            vault.register(*ensure_secrets(configuration).values())
    return vault


def make_context(configuration: Configuration, vault: Vault) -> CheckContext:
    """Make what the checks of services get."""
    return CheckContext(
        configuration=configuration,
        vault=vault,
        reading=lambda: reading(configuration.database_url, make_guard(configuration, vault)),
    )


def stored_sessions(
    configuration: Configuration, *, agent: str | None, state: str | None, limit: int
) -> list[SessionOut]:
    """List sessions, the one used last first; none before the first start.

    Raises:
        BridgeError: there is no such agent, or the store cannot be read.
    """
    registry = read_registry(configuration)
    with reading(configuration.database_url) as stores:
        if stores is None:
            return []
        wanted = None if agent is None else registry.find(agent).id
        only = ListFilter(agent=wanted, state=state)
        found = asyncio.run(stores.sessions.recent(only, limit=limit))
        return [_show(each, registry) for each in found]


def stored_session(
    configuration: Configuration, session: int
) -> tuple[SessionDetail, list[EntryOut]]:
    """Read a session with its turns, and what happened in it.

    Raises:
        BridgeError: there is no such session, or the store cannot be read.
    """
    registry = read_registry(configuration)
    with reading(configuration.database_url) as stores:
        found = None if stores is None else stores.sessions.session(session)
        if stores is None or found is None:
            raise NotFound("session", session)
        turns = asyncio.run(stores.turns.turns(session))
        entries: list[EntryOut] = []
        while rows := asyncio.run(
            stores.transcript.read(session, after=entries[-1].id if entries else 0, limit=ROWS)
        ):
            entries += [EntryOut.of(row) for row in rows]
        return SessionDetail.with_turns(_show(found, registry), turns), entries


def _show(session: Session, registry: Registry) -> SessionOut:
    """Show a session in the state that the page of a running bridge would show."""
    agent, configuration = session.key.agent, registry.configuration
    services = {service for service, owner in configuration.credentials if owner == agent}
    state = state_on(session, services) if agent in registry else ""
    return SessionOut.of(session, registry.name(agent), state)
