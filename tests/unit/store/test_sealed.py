"""A database is sealed with one key."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from app.config.process import Sealer
from app.store.database import Database, sqlite_url
from app.store.sealed import recognizes
from tests.support.postgres import need_server, server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    need_server()
    return server().provide(tmp_path)


def test_a_database_recognizes_the_key_it_is_sealed_with_and_no_other(url: str) -> None:
    database = Database(url)
    database.open()
    mine, other = Sealer(SecretStr("m" * 40)), Sealer(SecretStr("o" * 40))

    first, again, foreign = (recognizes(database, each) for each in (mine, mine, other))

    database.close()
    assert (first, again, foreign) == (True, True, False)
