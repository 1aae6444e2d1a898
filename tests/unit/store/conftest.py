"""Runs the tests of the store on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store.database import sqlite_url
from tests.support.postgres import CHOICE, need_server, server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if hasattr(metafunc.module, "open_stores"):
        metafunc.fixturenames.insert(0, "chosen_database")
        metafunc.parametrize("chosen_database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(scope="module")
def chosen_database(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "postgresql":
        need_server()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHOICE, request.param)
        yield


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a database without tables."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    need_server()
    return server().provide_empty(tmp_path)
