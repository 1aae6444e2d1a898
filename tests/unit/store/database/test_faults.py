"""A connection to PostgreSQL that is lost at any step, with any error, is never seen outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import Connection, insert, select

from app.errors import StoreUnavailable
from app.retry import hurried, persist
from app.store.database import Database, postgresql
from app.store.tables import sealed
from tests.support.clock import HastyClock
from tests.support.postgres import need_server, run, server
from tests.unit.store.database.test_postgresql import OTHERS

pytestmark = pytest.mark.anyio

REFUSALS: dict[str, Callable[[], psycopg.Error]] = {
    "starting up": errors.CannotConnectNow,
    "too many connections": errors.TooManyConnections,
    "not there": psycopg.OperationalError,
}
LOSSES: dict[str, Callable[[], psycopg.Error]] = {
    "shut down": errors.AdminShutdown,
    "crashed": errors.CrashShutdown,
    "idle for too long": errors.IdleSessionTimeout,
    "idle for too long in a commit": errors.IdleInTransactionSessionTimeout,
    "reset": psycopg.OperationalError,
    "closed": psycopg.InterfaceError,
}
KINDS = REFUSALS | LOSSES
READING = [*product(["connect"], REFUSALS), *product(["execute", "fetch"], LOSSES)]
WRITING = [*product(["connect"], REFUSALS), *product(["begin", "execute", "COMMIT"], LOSSES)]
TWICE = 2
"""Faults in a row: the next attempt meets one too."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    need_server()
    return server().provide(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def database(url: str) -> Iterator[Database]:
    database = Database(url)
    database.open()
    yield database
    database.close()


class Faults:
    """Breaks a connection at a step, a few times; what was sent before has arrived."""

    def __init__(self, step: str, make: Callable[[], psycopg.Error], times: float) -> None:
        self._step = step
        self._make = make
        self._left = times
        self.met = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("execute", "fetchone", "fetchall"):
            patch.setattr(psycopg.Cursor, name, self._break(getattr(psycopg.Cursor, name)))
        patch.setattr(psycopg, "connect", self._refuse(psycopg.connect))

    def _break(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(cursor: psycopg.Cursor[Any], *words: Any, **options: Any) -> Any:
            result = real(cursor, *words, **options)
            try:
                self._meet(_step_of(*words))
            except psycopg.Error:
                cursor.connection.close()
                raise
            return result

        return call

    def _refuse(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def connect(*words: Any, **options: Any) -> Any:
            self._meet("connect")
            return real(*words, **options)

        return connect

    def _meet(self, step: str) -> None:
        if step == self._step and self.met < self._left:
            self.met += 1
            raise self._make()


def _step_of(said: object = None, *_: object) -> str:
    if said is None:
        return "fetch"
    text = said.decode() if isinstance(said, bytes) else str(said)
    return next((step for step in ("begin", "COMMIT") if text.startswith(step)), "execute")


def add(connection: Connection) -> None:
    connection.execute(insert(sealed), {"name": "one", "value": "", "kept_at": 0.0})


def count(connection: Connection) -> int:
    return len(connection.execute(select(sealed)).fetchall())


def names(url: str) -> list[tuple[Any, ...]]:
    return run(url, "select name from sealed")


@pytest.fixture
def cut(database: Database, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Close all connections, and let no one wait for long."""
    monkeypatch.setattr(postgresql, "LOOK_SECONDS", 0.001)
    run(url, "delete from sealed")
    run(url, OTHERS)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize(("step", "kind"), READING)
async def test_what_is_cut_off_is_read_again(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch, step: str, kind: str
) -> None:
    run(url, "insert into sealed (name, value, kept_at) values ('one', '', 0)")
    faults = Faults(step, KINDS[kind], TWICE)
    faults.install(monkeypatch)

    found = [database.one(select(sealed.c.name)), *await database.all(select(sealed.c.name))]

    assert [each and each.name for each in found] == ["one", "one"]
    assert faults.met == TWICE


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize(("step", "kind"), WRITING)
async def test_what_is_cut_off_is_written_once(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch, step: str, kind: str
) -> None:
    faults = Faults(step, KINDS[kind], TWICE)
    faults.install(monkeypatch)

    await persist(HastyClock(), database.writer.run, add)

    assert names(url) == [("one",)]
    assert faults.met >= 1


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize(("step", "kind"), READING)
async def test_a_server_that_stays_away_is_said_to_be_unavailable(
    database: Database, url: str, monkeypatch: pytest.MonkeyPatch, step: str, kind: str
) -> None:
    monkeypatch.setattr(postgresql, "BEGIN_SECONDS", 0.01)
    monkeypatch.setattr(database._backend, "_away_seconds", 0.01)
    with monkeypatch.context() as patch:
        Faults(step, KINDS[kind], float("inf")).install(patch)

        with pytest.raises(StoreUnavailable):
            database.one(select(sealed.c.name))
        with pytest.raises(StoreUnavailable), hurried():
            await database.all(select(sealed.c.name))
        with pytest.raises(StoreUnavailable):
            await database.writer.run(count)

    await database.writer.run(add)
    assert names(url) == [("one",)]


def test_no_port_reads_past_what_waits() -> None:
    ports = [
        file
        for file in Path("app/store").rglob("*.py")
        if file.parent.name != "database" and file.stem != "stores"
    ]
    ports += [file for file in Path("app/features").rglob("*.py") if file.parent.name != "backup"]

    assert [file.name for file in ports if "engine.connect(" in file.read_text()] == []
