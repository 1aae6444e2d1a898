"""A store on PostgreSQL: commits that are alone and known, servers that are away or wrong."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, event, func, insert, select
from sqlalchemy.exc import OperationalError

from app.errors import StoreUnavailable
from app.store.database import Database, postgresql, server_check
from app.store.stores import name_store, reading, revision
from app.store.tables import sealed
from tests.support.postgres import locked, need_server, run, server
from tests.unit.store.database.test_schema import difference_of

pytestmark = pytest.mark.anyio

OTHERS = (
    "select pg_terminate_backend(pid) from pg_stat_activity"
    " where datname = current_database() and pid <> pg_backend_pid()"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    need_server()
    return server().provide(tmp_path)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    database = Database(url)
    database.open()
    yield database
    database.close()


def add(connection: Connection, name: str = "one") -> None:
    connection.execute(insert(sealed), {"name": name, "value": "", "kept_at": 0.0})


def names(url: str) -> list[str]:
    return [name for (name,) in run(url, "select name from sealed order by name")]


def test_the_migrations_build_the_tables(database: Database) -> None:
    with database.engine.connect() as connection:
        assert difference_of(connection) == []


async def test_two_bridges_that_look_and_then_write_are_never_in_between(url: str) -> None:
    def number(connection: Connection) -> None:
        count = connection.execute(select(func.count()).select_from(sealed)).scalar_one()
        add(connection, f"{count:03}")

    def work() -> None:
        database = Database(url)
        database.open()

        async def write() -> None:
            for _ in range(20):
                await database.writer.run(number)

        asyncio.run(write())
        database.close()

    bridges = [threading.Thread(target=work) for _ in range(3)]
    for bridge in bridges:
        bridge.start()
    for bridge in bridges:
        await asyncio.to_thread(bridge.join, 60.0)

    assert names(url) == [f"{number:03}" for number in range(60)]


async def test_a_commit_whose_answer_was_lost_is_known_to_be_done(
    database: Database, url: str
) -> None:
    def cut(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement == "COMMIT" and not lost:
            lost.append(statement)
            connection.connection.dbapi_connection.close()  # type: ignore[union-attr] # it is open
            raise OperationalError(statement, {}, psycopg.OperationalError("lost"))

    lost: list[str] = []
    event.listen(database.engine, "after_cursor_execute", cut)

    await database.writer.run(add)
    await database.writer.run(lambda connection: add(connection, "two"))

    assert lost
    assert names(url) == ["one", "two"]


async def test_a_commit_that_was_cut_off_before_is_known_to_be_undone(
    database: Database, url: str
) -> None:
    def cut(_connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement == "COMMIT" and not lost:
            lost.append(statement)
            run(url, OTHERS)

    lost: list[str] = []
    event.listen(database.engine, "before_cursor_execute", cut)

    with pytest.raises(StoreUnavailable):
        await database.writer.run(add)
    assert names(url) == []
    await database.writer.run(add)
    assert names(url) == ["one"]


async def test_connections_that_the_server_closed_are_opened_again(
    database: Database, url: str
) -> None:
    await database.writer.run(add)
    assert database.one(select(sealed)) is not None
    run(url, OTHERS)

    row = database.one(select(sealed))
    await database.writer.run(lambda connection: add(connection, "two"))

    assert row is not None
    assert names(url) == ["one", "two"]


async def test_a_bridge_that_stops_in_the_middle_of_a_commit_does_not_hold_up_others(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "IDLE_SECONDS", 1)
    stopped = Database(url)
    with stopped.engine.connect() as connection:
        stopped._backend.begin(connection, None)
        add(connection, "never")

        await database.writer.run(add)

        assert names(url) == ["one"]
        connection.invalidate()
    stopped.close()


async def test_a_write_that_waits_too_long_says_that_it_is_locked(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "LOCK_SECONDS", 1)
    impatient = Database(url)
    impatient.open()
    with locked(url), pytest.raises(StoreUnavailable, match="database is locked"):
        await impatient.writer.run(add)
    await impatient.writer.run(add)
    impatient.close()


async def test_a_text_may_hold_what_the_server_refuses(database: Database, url: str) -> None:
    await database.writer.run(lambda connection: add(connection, "a\0b"))

    assert names(url) == ["a\ufffdb"]


async def test_a_reader_changes_nothing_and_does_not_wait(url: str) -> None:
    Database(url).close()
    with reading(url) as stores:
        assert stores is not None
        with pytest.raises(StoreUnavailable):
            await stores.sessions.rename(1, "title")
    gone = url.replace("host=", "host=/nowhere")
    with pytest.raises(StoreUnavailable, match="Start the server"):
        revision(gone)


@pytest.mark.parametrize(
    ("options", "statements", "said"),
    [
        ("-csearch_path%3Dmissing", [], "no schema of its search_path"),
        (
            "-crole%3Dguest",
            ["drop role if exists guest", "create role guest"],
            "may not create tables in the schema 'public'. Run `grant usage, create",
        ),
    ],
)
def test_what_is_wrong_with_a_database_is_said_with_its_remedy(
    url: str, options: str, statements: list[str], said: str
) -> None:
    for statement in statements:
        run(url, statement)
    database = Database(f"{url}&options={options}")

    with pytest.raises(StoreUnavailable) as refused:
        database.open()

    assert said in str(refused.value)
    database.close()


def test_a_server_that_is_too_old_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_check, "OLDEST_VERSION", 99)

    with pytest.raises(StoreUnavailable, match="Use PostgreSQL 99 or later"):
        revision(url)


def test_a_database_that_is_not_there_is_said(url: str) -> None:
    missing = url.replace("@/t", "@/nosuch")

    with pytest.raises(StoreUnavailable, match="Create the database"):
        revision(missing)


def test_the_name_of_a_store_has_no_password() -> None:
    shown = name_store("postgresql://bridge:swordfish@db:5432/bridge?password=swordfish")

    assert shown == "postgresql://bridge@db:5432/bridge"
