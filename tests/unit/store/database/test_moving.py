"""A store that moves from a file to PostgreSQL: every row, as it is, also after it was cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, select, text

from app.errors import Conflict, StoreUnavailable
from app.features.delegation.store import DelegationStore
from app.features.memory.store import MemoryStore
from app.model.delegation import DelegationLimits, NewDelegation
from app.model.updates import AskOption, AskRequest
from app.store import tables
from app.store.database import Database, moving, sqlite_url
from app.store.database.moving import move
from app.store.dialects import JsonField
from app.store.guarding import Guard, put_on_guard
from app.store.stores import Stores
from app.store.transcript import check_turns
from app.vault import Vault
from tests.support.memory import ANN, decision, delivery, heard, opened, prepare_store
from tests.support.postgres import need_server, server

pytestmark = pytest.mark.anyio

HARD = "a NUL \0, an emoji \U0001f600, a quote ' and a \\ in it"
SECRET = "hunter2-hunter2-hunter2"
ASK = AskRequest("c1", "Run it?", (AskOption("yes", "Yes", "allow_once"),))
DEEP = DelegationLimits()


class Seals:
    """Seals by writing backwards."""

    def seal(self, _name: str, secret: str) -> str:
        return secret[::-1]

    def open(self, _name: str, sealed: str) -> str | None:
        return sealed[::-1]

    def seal_bytes(self, _name: str, secret: bytes) -> bytes:
        return secret[::-1]

    def open_bytes(self, _name: str, sealed: bytes) -> bytes | None:
        return sealed[::-1]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    need_server()
    monkeypatch.delenv("TEST_DATABASE", raising=False)
    prepare_store(tmp_path)
    database = guarded(sqlite_url(tmp_path))
    yield database
    database.close()


@pytest.fixture
def target(source: Database, tmp_path: Path) -> Iterator[Database]:
    database = guarded(server().provide(tmp_path))
    yield database
    database.close()


def guarded(url: str) -> Database:
    database = Database(url)
    put_on_guard(database.engine.dialect, Guard(Vault([SECRET]), Seals))
    return database


async def fill(database: Database) -> Stores:
    """Let something of everything happen."""
    database.open()
    stores = Stores.on(database, lambda: 10.0)
    await stores.deliveries.add(delivery(body=f"raw {SECRET}".encode()))
    for number in range(3):
        said = heard(f"do {number} with {SECRET}. {HARD}", f"t{number}")
        await stores.decisions.accept(decision(said, "demo"))
    ref = (await stores.turns.queued())[0]
    await opened(stores, ASK, ref)
    entries = [("1", "Zürich, Österreich"), ("2", "other words")]
    await stores.open(MemoryStore).index("demo", "2026-01-01", "v1", entries)
    for task in ("one", "two"):
        new = NewDelegation("message", "codex", ref.session, ref.turn, task, ANN)
        assert (await stores.open(DelegationStore).begin(new, DEEP)).delegation is not None
    await database.writer.run(
        lambda connection: connection.execute(
            delete(tables.delegation).where(tables.delegation.c.task == "two")
        )
    )
    return stores


def read_all(database: Database) -> dict[str, list[str]]:
    """Read every row as the bridge sees it."""
    with database.engine.connect() as connection:
        return {
            each.name: sorted(str(tuple(row)) for row in connection.execute(select(each)))
            for each in tables.metadata.sorted_tables
        }


def ignore(_name: str, _rows: int) -> None:
    """Tell no one."""


async def test_every_row_is_there_and_numbers_go_on(source: Database, target: Database) -> None:
    await fill(source)
    told: dict[str, int] = {}

    move(source, target, "ours", told.__setitem__)

    target.open()
    before = {
        name: [row.replace("\\x00", "\ufffd") for row in rows]
        for name, rows in read_all(source).items()
    }
    assert read_all(target) == before
    assert {name: rows for name, rows in told.items() if rows} == {
        **{name: len(rows) for name, rows in before.items() if rows},
        "memory_text": 2,
    }
    stores = Stores.on(target, lambda: 20.0)
    assert await stores.open(MemoryStore).search("demo", ["zurich"], every=True, limit=5) == [
        ("2026-01-01", "1")
    ]
    new = NewDelegation("message", "codex", 1, 1, "three", ANN)
    begun = (await stores.open(DelegationStore).begin(new, DEEP)).delegation
    assert begun is not None
    assert begun.id == 3  # the second one was deleted, and its number is not used again
    ask = stores.asks.open_in(1)[0]
    assert await stores.asks.answer(ask.id, "yes", "Ann") is not None


async def test_rows_with_what_a_server_refuses_are_moved_and_fail_no_turn(
    source: Database, target: Database
) -> None:
    await fill(source)
    refused = r'{"value": "a\u0000b\ud800c \\u0000", "number": NaN}'
    with source.engine.connect() as connection:
        connection.exec_driver_sql("update transcript set data = ?, text = ?", (refused, "a\0b"))
        connection.exec_driver_sql("commit")

    move(source, target, "ours", ignore)

    target.open()
    await check_turns(target)
    row = target.one(select(tables.transcript.c.data, JsonField(tables.transcript.c.data, "value")))
    kept = "a\ufffdb\ufffdc \\u0000"
    assert row == ({"value": kept, "number": None}, kept)


async def test_a_move_that_was_cut_off_goes_on_and_no_bridge_starts_before(
    source: Database, target: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(source)
    monkeypatch.setattr(moving, "AT_ONCE", 2)
    note, noted = moving._note, list[str]()

    def note_ten(connection: Connection, name: str, last: int, owner: str | None = None) -> None:
        noted.append(name)
        if len(noted) == 10:
            raise KeyboardInterrupt
        note(connection, name, last, owner)

    monkeypatch.setattr(moving, "_note", note_ten)
    with pytest.raises(KeyboardInterrupt):
        move(source, target, "ours", ignore)

    with pytest.raises(StoreUnavailable, match="being moved"):
        target.open()
    with pytest.raises(Conflict, match="another installation"):
        move(source, target, "another", ignore)
    move(source, target, "ours", ignore)

    assert noted[0] == ""
    assert noted[9] in noted[10:]
    assert not {*noted[:8]} & {*noted[10:]}  # what was there is not copied again
    target.open()


@pytest.mark.long
async def test_a_file_that_changed_since_is_moved_from_the_beginning(
    source: Database, target: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = await fill(source)
    finish = moving._finish
    monkeypatch.setattr(moving, "_finish", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        move(source, target, "ours", ignore)
    monkeypatch.setattr(moving, "_finish", finish)
    await stores.sessions.rename(1, "another title")

    move(source, target, "ours", ignore)

    target.open()
    session = Stores.on(target, lambda: 20.0).sessions.session(1)
    assert session is not None
    assert session.title == "another title"


async def test_a_database_with_other_data_is_refused(source: Database, target: Database) -> None:
    await fill(source)
    await fill(target)
    before = read_all(target)

    with pytest.raises(Conflict, match="already holds data"):
        move(source, target, "ours", ignore)

    assert read_all(target) == before


async def test_two_moves_do_not_write_to_one_database(source: Database, target: Database) -> None:
    await fill(source)

    with moving._alone(target.engine), pytest.raises(Conflict, match="another move"):
        move(source, target, "ours", ignore)


@pytest.mark.long
async def test_a_difference_is_found(source: Database, target: Database) -> None:
    await fill(source)
    target.upgrade()
    copied = [*map(moving._copy_of, tables.metadata.sorted_tables), moving._entries()]
    moving._begin(target.engine, "ours")
    moving._copy_all(source.engine, target.engine, copied)
    assert moving._check_all(source.engine, target.engine, copied, ignore)

    with target.engine.connect() as connection:
        connection.execute(text("update place set title = 'other' where id = 2"))

    assert not moving._check_all(source.engine, target.engine, copied, ignore)
