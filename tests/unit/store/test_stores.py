"""The store opened to look at it: nothing is made, nothing is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import StoreUnavailable
from app.store.database import Database, sqlite_url
from app.store.database.schema import HEAD_REVISION
from app.store.stores import reading, revision


@pytest.fixture
def url(tmp_path: Path) -> str:
    folder = tmp_path / "with blanks & #1"
    folder.mkdir()
    return sqlite_url(folder)


def made(url: str) -> Database:
    database = Database(url)
    database.open()
    return database


def test_where_there_is_no_database_there_is_nothing_to_read_and_none_is_made(
    url: str, tmp_path: Path
) -> None:
    assert revision(url) is None
    with reading(url) as stores:
        assert stores is None

    assert list((tmp_path / "with blanks & #1").iterdir()) == []


async def test_a_database_is_read_while_a_bridge_writes_it(url: str) -> None:
    writing = made(url)
    try:
        with reading(url) as stores:
            assert stores is not None
            assert await stores.sessions.recent(limit=1) == []
            with pytest.raises(StoreUnavailable):
                await stores.sessions.rename(1, "title")
    finally:
        writing.close()


def test_the_schema_of_a_database_is_told(url: str) -> None:
    made(url).close()

    assert revision(url) == HEAD_REVISION


def test_a_database_of_another_version_is_not_read(url: str) -> None:
    database = made(url)
    with database.engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
    database.close()

    with pytest.raises(StoreUnavailable, match="migration 9999"), reading(url):
        pass


def test_a_file_that_is_no_database_is_told(url: str, tmp_path: Path) -> None:
    (tmp_path / "with blanks & #1" / "bridge.db").write_text("no database" * 200)

    with pytest.raises(StoreUnavailable, match="not a database"):
        revision(url)
