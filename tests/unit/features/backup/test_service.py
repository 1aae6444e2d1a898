"""Backup and restore of one machine's folders: what is in it, what opens it, what is refused."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.config import Configuration, load
from app.errors import BackupUnusable, BridgeError
from app.features.backup.service import back_up, restore
from app.features.backup.stream import Secret
from app.store.database import open_backend, sqlite_url
from app.store.database.schema import HEAD_REVISION, REVISION_BEFORE, migrate_to
from tests.support.memory import prepare_store

KEY = "a-long-and-random-key-of-the-tests-0123456789"
SEALED = Secret("secret key", KEY)
OTHER = "another-long-and-random-key-of-them-987654321"
WORDS = Secret("passphrase", "correct horse battery")


def machine(folder: Path, **more: str) -> Configuration:
    """Describe a machine with its own folders."""
    folder.mkdir(exist_ok=True)
    given = {"DATA_DIR": str(folder / "data"), "PATH": os.environ["PATH"], **more}
    return load(given, home=folder)


@pytest.fixture
def old(tmp_path: Path) -> Configuration:
    """Fill a machine with data of every kind."""
    shared = tmp_path / "old-shared"
    shared.mkdir(mode=0o700)
    found = machine(tmp_path / "old", BRIDGE_SECRET_KEY=KEY, SHARED_DIR=str(shared))
    data = found.data_dir
    data.mkdir(mode=0o700)
    prepare_store(data)
    for path in (
        data / "workspaces" / "1-demo" / "scratch.txt",
        data / "workspaces" / "2-demo-1" / ".git" / "config",
        data / "workspaces" / "2-demo-1" / "clone.txt",
        data / "reserve",
        shared / "agents" / "demo" / "SOUL.md",
        shared / "mirrors" / "repository" / "HEAD",
        shared / "kept" / "2" / "state",
        shared / "agents.lock",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    return found


def files_of(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def test_a_backup_has_what_a_bridge_cannot_make_again(old: Configuration, tmp_path: Path) -> None:
    with closing(sqlite3.connect(old.data_dir / "bridge.db")) as database, database:
        database.execute("insert into place (service, name) values ('web', 't1')")
    left = old.data_dir / ".backing-up-killed"
    left.mkdir()
    os.utime(left, (0, 0))
    contents = back_up(old, tmp_path / "backup", SEALED)
    new = machine(tmp_path / "new", BRIDGE_SECRET_KEY=KEY)
    restore(new, tmp_path / "backup", SEALED)

    assert contents.rows["place"] == 1
    # One machine without SHARED_DIR has both folders in one.
    assert files_of(new.data_dir) == [
        "agents/demo/SOUL.md",
        "bridge.db",
        "bridge.lock",
        "kept/2/state",
        "workspaces/1-demo/scratch.txt",
        "workspaces/2-demo-1/.git/config",
        "workspaces/2-demo-1/clone.txt",
    ]
    assert not list(old.data_dir.glob(".*"))
    with closing(sqlite3.connect(new.data_dir / "bridge.db")) as database:
        assert database.execute("select name from place").fetchall() == [("t1",)]
        paused = database.execute("select scope, reason from suspension").fetchall()
    assert paused == [("all", "restored")]


@pytest.mark.long
def test_only_the_same_secrets_open_and_use_a_backup(old: Configuration, tmp_path: Path) -> None:
    back_up(old, tmp_path / "by-key", SEALED)
    back_up(old, tmp_path / "by-words", WORDS)
    other = machine(tmp_path / "other", BRIDGE_SECRET_KEY=OTHER)
    for source, secret in (
        ("by-key", Secret("secret key", OTHER)),
        ("by-words", Secret("passphrase", "wrong horse battery")),
        ("by-words", WORDS),
    ):
        with pytest.raises(BackupUnusable, match="sealed"):
            restore(other, tmp_path / source, secret)
    assert files_of(other.data_dir) == ["bridge.lock"]

    alone = machine(tmp_path / "alone")
    restore(alone, tmp_path / "by-words", WORDS)
    assert f"BRIDGE_SECRET_KEY={KEY}\n" in (alone.data_dir / "secrets").read_text()
    assert (alone.data_dir / "secrets").stat().st_mode & 0o777 == 0o600
    assert b"BRIDGE" not in (tmp_path / "by-words").read_bytes()


def test_nothing_is_overwritten_and_a_failed_restore_leaves_nothing(
    old: Configuration, tmp_path: Path
) -> None:
    back_up(old, tmp_path / "backup", SEALED)
    new = machine(tmp_path / "new", BRIDGE_SECRET_KEY=KEY)
    new.data_dir.mkdir(mode=0o700)
    (new.data_dir / "agents").mkdir()
    with pytest.raises(BackupUnusable, match="agents' is there already"):
        restore(new, tmp_path / "backup", SEALED)
    (new.data_dir / "agents").rmdir()
    (tmp_path / "file").touch()
    nowhere = machine(
        tmp_path / "new",
        BRIDGE_SECRET_KEY=KEY,
        DATABASE_URL=f"sqlite:///{tmp_path / 'file' / 'bridge.db'}",
    )
    with pytest.raises((BridgeError, OSError)):
        restore(nowhere, tmp_path / "backup", SEALED)
    assert files_of(new.data_dir) == ["bridge.lock"]

    with pytest.raises(BackupUnusable, match="within DATA_DIR"):
        back_up(old, old.data_dir / "backup", SEALED)
    with pytest.raises(BackupUnusable, match="within SHARED_DIR"):
        back_up(old, old.shared_dir / "backup", SEALED)
    restore(new, tmp_path / "backup", SEALED)
    with pytest.raises(BackupUnusable, match="a database already"):
        restore(new, tmp_path / "backup", SEALED)


def test_a_restore_that_was_killed_is_told_and_never_mixed(
    old: Configuration, tmp_path: Path
) -> None:
    back_up(old, tmp_path / "backup", SEALED)
    new = machine(tmp_path / "new", BRIDGE_SECRET_KEY=KEY)
    (new.data_dir / "restoring").mkdir(parents=True, mode=0o700)

    with pytest.raises(BackupUnusable, match="was cut off"):
        restore(new, tmp_path / "backup", SEALED)


def test_a_backup_of_the_release_before_is_upgraded_and_one_of_a_later_one_refused(
    old: Configuration, tmp_path: Path
) -> None:
    file = old.data_dir / "bridge.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("update alembic_version set version_num = '0999'")
    back_up(old, tmp_path / "later", SEALED)
    file.unlink()
    backend = open_backend(sqlite_url(old.data_dir))
    migrate_to(REVISION_BEFORE, backend)
    backend.close()
    back_up(old, tmp_path / "before", SEALED)

    new = machine(tmp_path / "new", BRIDGE_SECRET_KEY=KEY)
    with pytest.raises(BackupUnusable, match="Use the release that made it"):
        restore(new, tmp_path / "later", SEALED)
    restore(new, tmp_path / "before", SEALED)
    with closing(sqlite3.connect(new.data_dir / "bridge.db")) as database:
        found = database.execute("select version_num from alembic_version").fetchall()
    assert found == [(HEAD_REVISION,)]
