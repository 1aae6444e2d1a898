"""A copy of a database: every row as it is, numbers that go on, and nothing that is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, text

from app.clock import SystemClock
from app.errors import BackupUnusable
from app.features.backup.store import copy_in, copy_out
from app.features.pause.store import SuspensionStore
from app.store.database import Database, sqlite_url
from app.store.tables import metadata
from tests.support import postgres
from tests.support.memory import decision, delivery, heard, open_stores

pytestmark = pytest.mark.anyio

HARD = "an emoji \U0001f600, a tab \t, a line\nbreak, a quote ' and a \\N in it"


def address_of(folder: Path) -> str:
    """Return the database of a folder, on the server or in it."""
    return postgres.server().provide(folder) if postgres.is_wanted() else sqlite_url(folder)


def rows_of(url: str) -> dict[str, list[str]]:
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            return {
                name: sorted(map(repr, connection.execute(select(table)).all()))
                for name, table in metadata.tables.items()
            }
    finally:
        database.engine.dispose()


async def test_a_copy_has_every_row_and_goes_on_with_the_numbers(tmp_path: Path) -> None:
    old, new, folder = tmp_path / "old", tmp_path / "new", tmp_path / "copy"
    for each in (old, new, folder):
        each.mkdir()
    with open_stores(old, SystemClock()) as (database, stores):
        await stores.deliveries.add(delivery(body=bytes(range(256)), signature="s1"))
        for place in ("t1", "t2"):
            await stores.decisions.accept(decision(heard(HARD, place), "demo"))
        await stores.sealed.keep("name", "value")
        await stores.open(SuspensionStore).add("agent:demo", "operator")
        await database.writer.run(
            lambda connection: connection.execute(text("delete from post where id = 4"))
        )
        copied = copy_out(address_of(old), folder)
        await stores.decisions.accept(decision(heard("later", "t3"), "demo"))
        later = rows_of(address_of(old))

    copy_in(address_of(new), folder, copied, 7.0)

    found = rows_of(address_of(new))
    paused = found.pop("suspension")
    assert len(paused) == 2
    assert "('all', 'restored', 7.0)" in paused
    assert {name: rows for name, rows in found.items() if set(rows) - set(later[name])} == {}
    assert {name: len(found[name]) for name in ("place", "turn", "delivery", "sealed")} == {
        "place": 2,
        "turn": 2,
        "delivery": 1,
        "sealed": 1,
    }
    assert copied.rows["transcript"] == 4
    with pytest.raises(BackupUnusable, match="already"):
        copy_in(address_of(new), folder, copied, 7.0)
    with open_stores(new, SystemClock()) as (_, stores):
        accepted = await stores.decisions.accept(decision(heard("next", "t4"), "demo"))
    assert min(accepted.posts) > 4, "a number was used twice"
