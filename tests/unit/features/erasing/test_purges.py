"""Purging rows: no text column of any table is left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    Table,
    UniqueConstraint,
    delete,
    insert,
)
from sqlalchemy.types import TypeDecorator

from app.config.process import Sealer
from app.features.erasing.model import Purge
from app.features.erasing.store.purges import PurgeStore
from app.model.keys import SessionKey
from app.model.record import TEXTS, RecordEvent, RecordKind
from app.store.database import FILE_NAME, Database, sqlite_url
from app.store.guarding import Guard, put_on_guard
from app.store.record import append
from app.store.tables import agent, metadata, record
from app.vault import Vault, vault_of

pytestmark = pytest.mark.anyio

LEAKED = "zq7-Pelican-4411-secret"
NUMBERS = count(1)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(sqlite_url(tmp_path))
    put_on_guard(database.engine.dialect, Guard(Vault(), lambda: Sealer(SecretStr("k" * 40))))
    database.open()
    yield database
    database.close()


def fill(table: Table, connection: Connection) -> None:
    """Write a row that has the text wherever no other row refers to it."""
    if table is record:
        texts: dict[str, Any] = {name: f"{name} with {LEAKED}" for name in TEXTS}
        append(connection, [RecordEvent(kind=RecordKind.CALL, source="call:1", at=1.0, **texts)])
        return
    connection.execute(insert(table), {each.name: value_of(each) for each in table.columns})


def value_of(column: Column[Any]) -> Any:
    kind = column.type.impl if isinstance(column.type, TypeDecorator) else column.type
    unique = [each for each in column.table.constraints if isinstance(each, UniqueConstraint)]
    if isinstance(kind, Integer | Float | Boolean):
        return 1
    if column.primary_key or column.unique or any(column.name in each.columns for each in unique):
        return f"key-{next(NUMBERS)}"
    if column.name in {"external", "marker", "remote_id"}:
        return "somewhere"
    if isinstance(kind, JSON):
        return [{"a": f"JSON with {LEAKED}"}]
    if isinstance(kind, LargeBinary):
        return f"bytes with {LEAKED}".encode()
    return f"{column.name} with {LEAKED}"


async def test_no_column_keeps_the_text(database: Database, tmp_path: Path) -> None:
    def write(connection: Connection) -> None:
        connection.exec_driver_sql("pragma defer_foreign_keys = on")
        for table in metadata.sorted_tables:
            fill(table, connection)

    await database.writer.run(write)
    rows, vault = PurgeStore(database, lambda: 1.0), vault_of(LEAKED)

    trail = await rows.trace(vault)
    changed = await rows.redact(vault)
    agents = delete(agent)
    await database.writer.run(lambda connection: connection.execute(agents))
    await database.compact()

    assert trail.sessions == {1}
    assert trail.agents != ()
    assert trail.fixed == ()
    assert changed == trail.rows > 10
    left = await rows.trace(vault)
    assert left.rows == 0
    assert LEAKED.encode() not in (tmp_path / FILE_NAME).read_bytes()


async def test_what_was_purged_is_stored_sealed(database: Database, tmp_path: Path) -> None:
    rows = PurgeStore(database, lambda: 1.0)
    key = SessionKey("slack", "C1:1700.1", "demo")
    purge = Purge("one", LEAKED, frozenset({key}))

    await rows.keep(purge)

    assert await rows.list() == [purge]
    assert rows.texts() == [LEAKED]
    # It does not count as a place that holds it.
    assert (await rows.trace(vault_of(LEAKED))).rows == 0
    await database.compact()
    assert LEAKED.encode() not in (tmp_path / FILE_NAME).read_bytes()
