"""The schema: what alembic builds is what the tables say."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, event, insert, inspect, select

from alembic import command
from app.errors import Conflict, StoreUnavailable
from app.features.delegation.store import DelegationStore
from app.model.delegation import DelegationLimits, NewDelegation
from app.model.posts import NoteCode, PostContent
from app.store.database import FILE_NAME, Database, open_backend, roll_back, sqlite_url
from app.store.database.schema import (
    HEAD_REVISION,
    REVISION_BEFORE,
    migrate_to,
    migrations_folder,
    write_out_notes,
)
from app.store.dialects import MEMORY_TEXT
from app.store.stores import Stores
from app.store.tables import login, metadata, post, surface, transcript
from tests.support.memory import ANN

NOTES_BEFORE = 26
"""How many codes of notes the release before knows."""
BEFORE_DELEGATION = (
    "insert into place (service, name) values ('web', 't1')",
    "insert into session (agent, place, created_at, updated_at) values ('claude', 1, 0, 0)",
    "insert into surface (service, external, agent, session, place)"
    " values ('web', 't1', 'claude', 1, 1)",
    "insert into turn (session, surface, state, created_at) values (1, 1, 'prompted', 0)",
    "insert into ask (session, turn, generation, kind, call, title, options, deadline, created_at)"
    " values (1, 1, 1, 'permission', 'c', 'May I?', '[]', 99, 0)",
)
"""A turn of an agent that asks a person."""


def difference_of(connection: Connection) -> list[Any]:
    """Compare what the migrations built with the tables, but for those of libraries."""

    def is_ours(name: str | None, kind: str, _parents: object) -> bool:
        return kind != "table" or not str(name).startswith((MEMORY_TEXT, "procrastinate_"))

    options = {"include_name": is_ours}
    context = MigrationContext.configure(connection, opts=options)
    return list(compare_metadata(context, metadata))


def test_the_migrations_build_the_tables(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    database.upgrade()

    with database.engine.connect() as connection:
        difference = difference_of(connection)

    assert difference == []
    database.engine.dispose()


def test_the_head_revision_is_the_newest_migration() -> None:
    assert ScriptDirectory(str(migrations_folder())).get_heads() == [HEAD_REVISION]


def test_a_store_of_the_first_tables_keeps_its_surfaces(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.exec_driver_sql("insert into place (service, name) values ('web', 't1')")
        connection.exec_driver_sql(
            "insert into session (agent, place, created_at, updated_at) values ('claude', 1, 0, 0)"
        )
        connection.exec_driver_sql(
            "insert into surface (service, external, agent, session, place, detail)"
            " values ('web', 't1', 'claude', 1, 1, '{}')"
        )

    database.upgrade()

    with database.engine.connect() as connection:
        row = connection.execute(select(surface)).mappings().one()
        difference = difference_of(connection)
    assert (row["external"], row["agent"], row["reachable"]) == ("t1", "claude", True)
    assert difference == []
    database.engine.dispose()


async def test_a_conversation_of_the_release_before_goes_on_with_agents_that_ask_each_other(
    tmp_path: Path,
) -> None:
    database = Database(sqlite_url(tmp_path))
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    with database.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0005")
        for statement in BEFORE_DELEGATION:
            connection.exec_driver_sql(statement)

    database.open()
    stores = Stores.on(database, lambda: 10.0)
    (ask,) = stores.asks.open_in(1)
    new = NewDelegation("message", "codex", 1, 1, "look", ANN)
    begun = await stores.open(DelegationStore).begin(new, DelegationLimits())
    database.close()

    assert (ask.title, ask.host) == ("May I?", None)
    assert begun.delegation is not None
    assert (begun.delegation.root_session, begun.delegation.root_turn) == (1, 1)


def test_a_store_that_is_up_to_date_is_left_alone(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    database.upgrade()
    before = (tmp_path / FILE_NAME).stat().st_mtime_ns

    database.upgrade()

    assert (tmp_path / FILE_NAME).stat().st_mtime_ns == before
    database.engine.dispose()


def test_a_damaged_file_is_refused_with_a_remedy_and_kept(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    file.write_bytes(b"this is no database" * 100)

    with pytest.raises(StoreUnavailable, match="The file is unchanged"):
        Database(sqlite_url(tmp_path)).open()

    assert file.read_bytes() == b"this is no database" * 100


@pytest.mark.parametrize(
    ("pragma", "remedy"),
    [("max_page_count = 9", "Free some disk space"), ("query_only = on", "Let the user of")],
)
def test_a_file_that_cannot_be_written_is_refused_with_the_remedy_for_that(
    tmp_path: Path, pragma: str, remedy: str
) -> None:
    database = Database(sqlite_url(tmp_path))
    event.listen(database.engine, "connect", lambda own, _: own.execute(f"pragma {pragma}").close())

    with pytest.raises(StoreUnavailable, match=f"The file is unchanged. {remedy}"):
        database.open()

    database.close()


def test_a_file_that_another_process_locks_is_refused_with_the_remedy_for_that(
    tmp_path: Path,
) -> None:
    database = Database(sqlite_url(tmp_path))
    event.listen(database.engine, "connect", lambda own, _: own.execute("pragma busy_timeout = 1"))
    database.engine.connect().close()

    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(StoreUnavailable, match="Stop the process that locks it"):
            database.open()

    database.close()


@pytest.mark.parametrize("name", ["100%25", "what?", "a#b", "with space"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    database = Database(sqlite_url(folder))

    database.upgrade()

    assert (folder / FILE_NAME).exists()
    database.engine.dispose()


def columns_of(connection: Connection) -> dict[str, set[str]]:
    """Read the columns of every table."""
    found = inspect(connection)
    return {
        name: {column["name"] for column in found.get_columns(name)}
        for name in found.get_table_names()
    }


def test_the_newest_migration_is_undone_for_the_release_before(url: str) -> None:
    database = Database(url)
    migrate_to(REVISION_BEFORE, open_backend(url))
    with database.engine.begin() as connection:
        before = columns_of(connection)
        for statement in BEFORE_DELEGATION:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("insert into suspension values ('all', 'restored', 0)")
    database.upgrade()

    assert roll_back(url) == REVISION_BEFORE
    with pytest.raises(Conflict, match="nothing to undo"):
        roll_back(url)

    with database.engine.connect() as connection:
        assert columns_of(connection) == before
        assert connection.exec_driver_sql("select count(*) from ask").scalar() == 1
        assert connection.exec_driver_sql("select count(*) from suspension").scalar() == 1
    database.upgrade()
    with database.engine.connect() as connection:
        assert difference_of(connection) == []
    database.engine.dispose()


def test_log_ins_of_the_release_before_go_on_and_those_of_people_do_not_become_admins(
    url: str,
) -> None:
    backend = open_backend(url)
    migrate_to("0014", backend)
    names = "(id, link_hash, created_at, expires_at, used_at"
    with backend.engine.begin() as connection:
        connection.exec_driver_sql(f"insert into login {names}) values ('old', 'a', 1, 9, 2)")
    migrate_to("head", backend)
    with backend.engine.begin() as connection:
        kept = connection.execute(select(login)).one()
        connection.exec_driver_sql(
            f"insert into login {names}, person) values ('of a viewer', 'b', 1, 9, 2, 7)"
        )

    migrate_to("0014", backend, back=True)

    with backend.engine.connect() as connection:
        left = connection.exec_driver_sql("select id from login").scalars().all()
    assert (kept.person, kept.proved_at) == (None, 2.0)
    assert left == ["old"]
    backend.close()


def test_notes_that_the_release_before_cannot_read_are_written_out(url: str) -> None:
    database = Database(url)
    database.upgrade()
    note = '{"code": "suspended", "by": "", "about": ""}'
    words = "The operator had paused the work here."
    with database.engine.begin() as connection:
        for statement in BEFORE_DELEGATION:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(
            "insert into transcript (place, session, kind, text, data, at) values "
            f"(1, 1, 'notice', 'suspended', '{{\"note\": {note}}}', 0), "
            "(1, 1, 'text', 'we suspended it', '{\"suspended\": 1}', 0)"
        )
        connection.exec_driver_sql(
            "insert into post (key, service, external, agent, marker, content, created_at) values "
            f"('k', 'web', 't1', 'claude', 'm', '{{\"note\": \"\", \"reason\": {note}}}', 0)"
        )

        write_out_notes(connection, {"suspended": words})

        said = select(transcript.c.text, transcript.c.data).order_by(transcript.c.id)
        rows = connection.execute(said).all()
        (content,) = connection.execute(select(post.c.content)).one()
    assert [tuple(row) for row in rows] == [
        (words, {"note": None}),
        ("we suspended it", {"suspended": 1}),
    ]
    assert content == {"note": words, "reason": None}
    database.engine.dispose()


def test_a_database_of_a_newer_release_is_refused_with_the_way_back(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path))
    database.upgrade()
    with database.engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '0999'")

    with pytest.raises(StoreUnavailable, match="migrate --back"):
        database.open()
    database.engine.dispose()


def test_every_code_that_the_release_before_does_not_know_is_written_out() -> None:
    scripts = ScriptDirectory(str(migrations_folder()))
    since = scripts.walk_revisions(REVISION_BEFORE, HEAD_REVISION)
    new = {
        code
        for script in since
        if script.revision != REVISION_BEFORE
        for code in getattr(script.module, "NEW_NOTES", {})
    }

    assert new <= {str(code) for code in NoteCode}
    assert len(set(NoteCode)) - len(new) == NOTES_BEFORE


def test_posts_are_cut_to_what_the_release_before_reads(url: str) -> None:
    database = Database(url)
    database.upgrade()
    content = json.loads(json.dumps(asdict(PostContent("notice", mentions=("U1",)))))
    with database.engine.begin() as connection:
        values = {"key": "k", "service": "web", "external": "t1", "agent": "a", "marker": "m"}
        connection.execute(insert(post).values(**values, content=content, created_at=0))
    roll_back(url)
    with database.engine.connect() as connection:
        (kept,) = connection.execute(select(post.c.content)).one()
    script = ScriptDirectory(str(migrations_folder())).get_revision("0009")
    assert script is not None
    assert set(kept) == set(script.module.POST_BEFORE) < set(content)
    database.engine.dispose()
