"""Migrations that are cut off: kill -9 at their statements, and what older releases left behind."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count, takewhile
from pathlib import Path

import pytest

from app.errors import StoreUnavailable
from app.store.database import FILE_NAME, Database, sqlite_url
from app.store.database.schema import HEAD_REVISION, REVISION_BEFORE, Names
from app.store.dialects import list_names
from tests.support.cutting import NEVER, Way, build, cut, upgrade
from tests.support.postgres import need_server, run, server
from tests.support.variants import quick

VERSIONS = (None, *(f"{number:04}" for number in range(1, int(HEAD_REVISION))))
SAMPLES = {
    "an empty one, some": (None, 29),
    "the release before, some": (REVISION_BEFORE, 3),
    **{f"{version or 'an empty one'}, all": (version, 1) for version in VERSIONS},
}
"""Databases, and which of the statements that follow are tried."""


def cut_at_every(
    folder: Path, version: str | None, way: Way, step: int
) -> Iterator[tuple[int, str]]:
    """Cut upgrades of a version off, each on a copy of its own, until one comes to its end."""
    base = folder / "base"
    base.mkdir()
    build(sqlite_url(base), version)
    for at in count(1, step):
        copy = folder / str(at)
        shutil.copytree(base, copy)
        if not cut(copy, sqlite_url(copy), way, at):
            return
        yield at, sqlite_url(copy)


def expect(folder: Path, version: str | None) -> object:
    """Upgrade a version without a cut."""
    whole = folder / "whole"
    whole.mkdir()
    build(sqlite_url(whole), version)
    return upgrade(sqlite_url(whole))


@pytest.mark.parametrize(("version", "step"), quick(2, SAMPLES))
def test_an_upgrade_that_is_killed_leaves_the_file_as_it_was_and_the_next_start_does_it(
    tmp_path: Path, version: str | None, step: int
) -> None:
    whole = expect(tmp_path, version)

    left, found = {}, {}
    for at, url in cut_at_every(tmp_path, version, "now", step):
        left[at] = names_of(url)
        found[at] = upgrade(url)

    assert len(found) >= 2
    assert set(left.values()) == {names_of(sqlite_url(tmp_path / "base"))}
    assert [at for at, each in found.items() if each != whole] == []


@pytest.mark.parametrize(("version", "step"), quick(2, SAMPLES))
def test_what_an_older_release_left_when_it_was_killed_is_completed_by_the_next_start(
    tmp_path: Path, version: str | None, step: int
) -> None:
    whole = expect(tmp_path, version)

    found = {at: upgrade(url) for at, url in cut_at_every(tmp_path, version, "released", step)}

    assert len(found) >= 2
    assert [at for at, each in found.items() if each != whole] == []


@pytest.mark.parametrize("version", quick(1, [REVISION_BEFORE, None]))
def test_a_server_keeps_nothing_of_an_upgrade_that_is_killed(
    tmp_path: Path, version: str | None
) -> None:
    need_server()
    url, whole = (server().provide_empty(tmp_path / name) for name in ("killed", "whole"))
    build(url, version)
    build(whole, version)
    before = names_of(url)

    killed = takewhile(lambda at: cut(tmp_path, url, "now", at), count(1))
    left = [names_of(url) for _ in killed]

    assert len(left) > 10
    assert set(left) == {before}
    assert upgrade(url) == upgrade(whole)


def test_of_two_that_start_at_once_one_upgrades_and_both_go_on(tmp_path: Path, url: str) -> None:
    build(url, REVISION_BEFORE)

    with ThreadPoolExecutor() as threads:
        ends = threads.map(lambda name: cut(tmp_path, url, "now", NEVER, name), ("one", "two"))

    assert [*ends] == [False, False]
    assert upgrade(url)["ask"][2][0]["title"] == "May I?"


def test_going_back_is_done_whole_or_not_at_all(tmp_path: Path, url: str) -> None:
    build(url, "head")
    before = names_of(url)

    killed = takewhile(lambda at: cut(tmp_path, url, "back", at), count(1))
    left = [names_of(url) for _ in killed]

    assert len(left) > 5
    assert set(left) == {before}
    assert names_of(url) < before
    assert upgrade(url)["ask"][2][0]["title"] == "May I?"


def names_of(url: str) -> Names:
    """Name our tables, columns and indexes of a database; Procrastinate makes its own."""
    database = Database(url)
    with database.engine.connect() as connection:
        names = list_names(connection)
    database.engine.dispose()
    return frozenset(each for each in names if not each[1].startswith("procrastinate_"))


@pytest.mark.parametrize(
    ("version", "statement", "cause"),
    [
        ("0006", "create table suspension (scope, reason); insert into suspension values (1, 2)",
         "it is at migration 0006.* the table suspension has rows"),
        ("0006", "alter table session add served_by; update session set served_by = 'm'",
         "the column session.served_by has values"),
        ("0006", "drop table review", "missing is review"),
        ("0006", "alter table place drop column holder", "missing is place.holder"),
        ("0006", "delete from alembic_version", "no version.* the table ask has rows"),
        ("0006", "drop table alembic_version", "no version.* the table ask has rows"),
        ("0007", "drop table saved_folder", "missing is saved_folder"),
        ("0008", "drop table suspension; drop table duty", "missing is duty, suspension"),
        ("0008", "alter table session drop column attributes", "missing is session.attributes"),
        ("0006", "update alembic_version set version_num = '0000'", "no release knows"),
    ],
)  # fmt: skip
def test_what_no_migration_leaves_is_refused_with_its_cause_and_kept_as_it_is(
    tmp_path: Path, version: str, statement: str, cause: str
) -> None:
    build(sqlite_url(tmp_path), version)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as store:
        store.executescript(statement)
        before = [*store.iterdump()]

    with pytest.raises(StoreUnavailable, match=cause) as refused:
        upgrade(sqlite_url(tmp_path))

    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as store:
        assert [*store.iterdump()] == before
    assert "agent-bridge restore" in str(refused.value)


@pytest.mark.parametrize(
    ("statement", "cause"),
    [
        (
            "alter table heard add column steered int",
            "tables do not fit its version.* already exists",
        ),
        ("drop table progress cascade", "tables do not fit that: missing is progress"),
        ("drop table turn cascade", "tables do not fit its version.*turn"),
        ("alter table session drop column served_by", "missing is session.served_by"),
    ],
)
def test_a_server_whose_tables_do_not_fit_is_refused_with_the_cause(
    tmp_path: Path, statement: str, cause: str
) -> None:
    need_server()
    url = server().provide_empty(tmp_path)
    build(url, REVISION_BEFORE)
    run(url, statement)
    before = names_of(url)

    with pytest.raises(StoreUnavailable, match=cause) as refused:
        upgrade(url)

    assert names_of(url) == before
    assert "agent-bridge restore" in str(refused.value)


def test_tables_that_are_not_ours_stay(tmp_path: Path) -> None:
    build(sqlite_url(tmp_path), REVISION_BEFORE)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as store, store:
        store.execute("create table _litestream_seq (id integer primary key, seq integer)")
        store.execute("create table alien (member text)")

    upgrade(sqlite_url(tmp_path))

    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as store:
        assert store.execute("select count(*) from alien, _litestream_seq").fetchall() == [(0,)]
