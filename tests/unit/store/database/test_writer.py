"""The one writer: together when it can, alone when it must, never silent."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, insert
from sqlalchemy.exc import OperationalError

from app.errors import DataDirInUse, StoreUnavailable
from app.store import database as database_module
from app.store.database import FILE_NAME, Database, locked, sqlite_url
from app.store.tables import place
from app.terminal.api import is_running

pytestmark = pytest.mark.anyio

INSERT = insert(place)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(sqlite_url(tmp_path))


async def count(database: Database) -> int:
    return len(await database.all(place.select()))


async def test_writes_that_wait_together_are_committed_together(database: Database) -> None:
    database.open()
    commits: list[str] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def see(_c: object, _k: object, statement: str, *_: object) -> None:
        commits.extend([statement] if statement == "COMMIT" else [])

    blocker = asyncio.Event()
    loop = asyncio.get_running_loop()

    def block(_connection: Connection) -> None:
        asyncio.run_coroutine_threadsafe(blocker.wait(), loop).result(5)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(database.writer.run(block))
        for number in range(50):
            group.create_task(
                database.writer.insert(INSERT, {"service": "web", "name": f"p{number}"})
            )
        await asyncio.sleep(0)
        blocker.set()

    assert await count(database) == 50
    assert len(commits) <= 3
    database.close()


async def test_a_unit_that_raises_fails_alone(database: Database) -> None:
    database.open()

    def poisoned(_connection: Connection) -> None:
        raise ValueError("poison")

    results = await asyncio.gather(
        *(database.writer.insert(INSERT, {"service": "web", "name": f"p{n}"}) for n in range(3)),
        database.writer.run(poisoned),
        *(database.writer.insert(INSERT, {"service": "web", "name": f"q{n}"}) for n in range(3)),
        return_exceptions=True,
    )

    assert [type(result) for result in results].count(ValueError) == 1
    assert await count(database) == 6
    database.close()


async def test_a_locked_file_fails_everybody_at_once_and_recovers(
    database: Database, tmp_path: Path
) -> None:
    database.open()
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async with asyncio.timeout(8):
        results = await asyncio.gather(
            *(
                database.writer.insert(INSERT, {"service": "web", "name": f"p{n}"})
                for n in range(9)
            ),
            return_exceptions=True,
        )
    other.execute("ROLLBACK")
    other.close()
    await database.writer.insert(INSERT, {"service": "web", "name": "late"})

    assert {type(result) for result in results} == {StoreUnavailable}
    assert await count(database) == 1
    database.close()


async def test_a_unit_that_was_committed_alone_is_told_so_when_a_later_one_finds_the_file_locked(
    database: Database,
) -> None:
    database.open()
    together = threading.Event()

    def poisoned(_connection: Connection) -> None:
        raise ValueError("poison")

    def locked_out(_connection: Connection) -> None:
        raise OperationalError("insert", {}, sqlite3.OperationalError("database is locked"))

    def insert_one(connection: Connection) -> int:
        return connection.execute(INSERT, {"service": "web", "name": "good"}).rowcount

    async def release() -> None:
        together.set()

    async with asyncio.timeout(5):
        _, good, bad, *unavailable, _ = await asyncio.gather(
            database.writer.run(lambda _connection: together.wait(5)),
            *(database.writer.run(unit) for unit in (insert_one, poisoned, locked_out, insert_one)),
            release(),
            return_exceptions=True,
        )

    assert good == 1
    assert isinstance(bad, ValueError)
    assert [type(error) for error in unavailable] == [StoreUnavailable, StoreUnavailable]
    assert await count(database) == 1
    database.close()


async def test_a_point_read_does_not_wait_for_lists_that_are_read(database: Database) -> None:
    database.open()
    readers = 12
    reading, over = threading.Barrier(readers + 1), threading.Event()

    def slow(_connection: Connection) -> None:
        reading.wait(5)
        over.wait(5)

    executor = ThreadPoolExecutor(readers + 1)
    asyncio.get_running_loop().set_default_executor(executor)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for _ in range(readers):
            group.create_task(database.read(slow))
        await asyncio.to_thread(reading.wait, 5)
        nothing = database.one(place.select())
        over.set()

    assert nothing is None
    database.close()


async def test_a_full_file_says_so_and_recovers(database: Database) -> None:
    pages = [1_000_000]

    @event.listens_for(database.engine, "connect")
    def limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"pragma max_page_count = {pages[0]}")

    database.open()
    database.engine.dispose()
    pages[0] = 1
    with pytest.raises(StoreUnavailable, match="full"):
        await database.writer.insert(INSERT, {"service": "web", "name": "x" * 100_000})
    database.engine.dispose()
    pages[0] = 1_000_000
    await database.writer.insert(INSERT, {"service": "web", "name": "y" * 100_000})

    assert await count(database) == 1
    database.close()


async def test_a_closed_writer_refuses_instead_of_waiting(database: Database) -> None:
    database.open()
    database.close()

    with pytest.raises(StoreUnavailable):
        await database.writer.run(lambda _connection: None)


def test_a_second_bridge_cannot_lock_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "LOCK_SECONDS", 0.0)
    with locked(tmp_path), pytest.raises(DataDirInUse, match="in use"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_start_waits_for_the_lock_of_a_bridge_that_is_going(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = ExitStack()
    going.enter_context(locked(tmp_path))
    monkeypatch.setattr(time, "sleep", lambda _seconds: going.close())

    with locked(tmp_path):
        assert is_running(tmp_path)
