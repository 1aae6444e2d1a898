"""The agents of the store for commands without a bridge: read, never written."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from app.config import AgentRecord, Configuration, ensure_secrets, load
from app.config.process import Sealer
from app.errors import AgentRemoved, ConfigurationError
from app.store.database import Database
from app.store.guarding import Guard, put_on_guard
from app.store.stores import Stores
from app.terminal.stored import read_registry
from app.vault import Vault

STORED = AgentRecord(id="first", name="second", entry={"command": "x"}, default=True)
GONE = AgentRecord(id="gone", name="gone", removed_at=1.0)
Configure = Callable[..., Configuration]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def make(**settings: str) -> Configuration:
        given = {"DATA_DIR": str(tmp_path / "data"), "AGENTS_JSON": '{"gone": {"command": "x"}}'}
        return load(given | settings, home=tmp_path)

    return make


def keep(configuration: Configuration, *records: AgentRecord) -> None:
    """Store records as a bridge does."""
    configuration.data_dir.mkdir(mode=0o700)
    secrets = ensure_secrets(configuration)
    database = Database(configuration.database_url)
    put_on_guard(database.engine.dialect, Guard(Vault(), lambda: Sealer(secrets.secret_key)))
    database.open()
    try:
        asyncio.run(Stores.on(database, lambda: 1.0).agents.save(*records))
    finally:
        database.close()


def test_every_agent_has_the_id_that_a_bridge_would_give_it(configure: Configure) -> None:
    keep(configure(), STORED, GONE)

    registry = read_registry(configure())

    assert {each.name: each.id for each in registry.values()} == {
        "gone": "gone-2",
        "second": "first",
    }
    assert registry.default.name == "second"
    assert registry.name("gone") == "gone"


def test_before_the_first_start_nothing_is_made(configure: Configure, tmp_path: Path) -> None:
    registry = read_registry(configure())

    assert list(registry) == ["gone"]
    assert not (tmp_path / "data").exists()


def test_an_entry_that_another_key_sealed_is_refused_in_words(configure: Configure) -> None:
    keep(configure(), STORED)

    with pytest.raises(ConfigurationError, match="Set the earlier key"):
        read_registry(configure(BRIDGE_SECRET_KEY="another-key-than-the-one-that-sealed-it"))


def test_an_older_store_has_no_agents_of_its_own(configure: Configure) -> None:
    keep(configure(), STORED)
    with sqlite3.connect(configure().data_dir / "bridge.db") as database:
        database.execute("update alembic_version set version_num = '0001'")

    assert list(read_registry(configure())) == ["gone"]


def test_a_removed_agent_is_known_as_such(configure: Configure) -> None:
    keep(configure(), AgentRecord(id="left", name="left", removed_at=1.0))

    with pytest.raises(AgentRemoved):
        read_registry(configure()).find("left")
