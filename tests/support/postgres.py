"""A PostgreSQL server for one test run, and a new database for everything that wants one.

The first test that needs it starts the server; it ends with the run, however that ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

import psycopg
import pytest
from psycopg.types.string import TextLoader

from app.store.database import Database
from app.store.database.postgresql import LOCK
from app.store.tables import metadata

ROOT = Path(__file__).parents[2]
CHOICE = "TEST_DATABASE"
"""Set to `postgresql`, every bridge and store of the tests is on it."""
USER = "bridge"
TEMPLATE = "prepared"
"""The database with the tables, which the others begin as a copy of."""
START_SECONDS = 60.0
KEPT = 60
"""Databases of one test process: each takes 8 MB, so the oldest ones go, if none uses them."""
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "400",
    "shared_buffers": "64MB",
    "max_wal_size": "4GB",
    "autovacuum": "off",
    "log_min_messages": "panic",
}


def is_wanted() -> bool:
    """Whether this run, or this test, is on PostgreSQL."""
    return os.environ.get(CHOICE) == "postgresql"


def settings_of(data_dir: Path) -> dict[str, str]:
    """Return the settings of a bridge on this run's database, if it is not SQLite."""
    return {"DATABASE_URL": server().provide(data_dir)} if is_wanted() else {}


def read_store(data_dir: Path) -> dict[str, bytes]:
    """Read all bytes of a bridge's database: its files, or the rows of every table."""
    if not is_wanted():
        return {file.name: file.read_bytes() for file in data_dir.glob("bridge.db*")}
    return dump(server().provide(data_dir))


def only_on_files(reason: str) -> pytest.MarkDecorator:
    """Mark a test of what only SQLite's file has."""
    return pytest.mark.skipif(is_wanted(), reason=f"on PostgreSQL: {reason}")


def need_server() -> None:
    """Skip a test where there is no PostgreSQL."""
    if find_programs() is None:
        pytest.skip("no PostgreSQL on this machine: install Debian's postgresql")


def run(url: str, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run a statement in the words of SQLite's driver; return its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.adapters.register_loader("json", TextLoader)
        cursor = connection.execute(query.replace("%", "%%").replace("?", "%s"), parameters)
        return cursor.fetchall() if cursor.description else []


def dump(url: str) -> dict[str, bytes]:
    """Read every row of every table as it is stored."""
    tables = "select tablename from pg_tables where schemaname = current_schema()"
    found = {}
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for (name,) in connection.execute(tables).fetchall():
            with cursor.copy(f'copy "{name}" to stdout') as rows:
                found[name] = b"".join(bytes(row) for row in rows)
    return found


@contextmanager
def locked(url: str, how: Literal["immediate", "exclusive"] = "immediate") -> Iterator[None]:
    """Keep every bridge from writing to a database, or also from reading it."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        connection.execute(LOCK)
        for table in metadata.tables if how == "exclusive" else ():
            connection.execute(f'lock table "{table}"')
        yield


@cache
def find_programs() -> Path | None:
    """Find the folder of the newest server's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _version(program: Path) -> int:
    return int(program.parts[-3])


@dataclass
class Cluster:
    """A server with its own data, in a folder with a short path; starts and ends as told."""

    folder: Path

    def __enter__(self) -> Self:
        self.make()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, name: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{USER}@/{name}?host={quote(str(self.folder))}"

    def make(self) -> None:
        """Make the data of a new server."""
        self._programs = find_programs()
        assert self._programs is not None
        self._user = server_user()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o755)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        words = ["-D", str(self.folder / "data"), "-U", USER, "--auth=trust", "--no-sync"]
        # Another order of letters than that of their bytes, as most installations have it.
        words += ["--encoding=UTF8", "--locale=C.UTF-8"]
        words += ["--locale-provider=icu", "--icu-locale=en"]
        subprocess.run(
            [self._programs / "initdb", *words],
            user=self._user,
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )

    def start(self) -> None:
        """Start it, without waiting until it listens."""
        assert self._programs is not None
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder, *settings],
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self, how: int = signal.SIGINT) -> None:
        """End it: what runs is cut off; with SIGQUIT as by a crash."""
        self._process.send_signal(how)
        self._process.wait(START_SECONDS)


@dataclass
class Server:
    """The server of this run."""

    cluster: Cluster
    made: deque[str] = field(default_factory=deque)

    def provide(self, owner: Path | str, template: str = TEMPLATE) -> str:
        """Return the address of the database of a folder, or another owner; made if need be."""
        name = "t" + hashlib.sha256(str(owner).encode()).hexdigest()[:16]
        if name not in self.made:
            self._make(name, template)
        return self.cluster.url(name)

    def provide_empty(self, owner: Path | str) -> str:
        """Return the address of a new database without tables."""
        return self.provide(owner, "template1")

    def run(self, owner: Path, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement on the database of a folder."""
        return run(self.provide(owner), query, *parameters)

    def _make(self, name: str, template: str) -> None:
        with psycopg.connect(self.cluster.url(), autocommit=True) as connection:
            # Other processes of this run may have made it, for the same folder.
            with suppress(psycopg.errors.DuplicateDatabase):
                connection.execute(f'create database "{name}" template {template}')
            if len(self.made) >= KEPT:
                old = self.made.popleft()
                with suppress(psycopg.errors.ObjectInUse):
                    connection.execute(f'drop database if exists "{old}"')
        self.made.append(name)


@cache
def server() -> Server:
    """Return the server of this run, started by the first that needs it."""
    worker = "PYTEST_XDIST_WORKER" in os.environ
    runner = os.getppid() if worker else os.getpid()
    folder = Path(tempfile.gettempdir()) / f"bridge-pg-{runner}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            command = [sys.executable, "-m", "tests.support.postgres", str(folder), str(runner)]
            subprocess.run(command, cwd=ROOT, check=True, timeout=START_SECONDS)
    return Server(Cluster(folder))


def _keep(folder: Path, runner: int, ready: int) -> None:
    """Run a server until the test run has ended."""
    watched = os.pidfd_open(runner)
    with Cluster(folder) as cluster:
        _prepare(cluster)
        (folder / "ready").touch()
        os.write(ready, b"1")
        os.close(ready)
        select.select([watched], [], [])
    folder.with_suffix(".lock").unlink(missing_ok=True)


def _prepare(cluster: Cluster) -> None:
    database = Database(cluster.url())
    database.check()  # waits until the server listens
    with database.engine.connect() as connection:
        connection.exec_driver_sql(f"create database {TEMPLATE}")
    database.close()
    prepared = Database(cluster.url(TEMPLATE))
    prepared.open()
    prepared.close()


def server_user() -> str | None:
    """Name the user that runs it: the server refuses root."""
    if os.geteuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _main(folder: Path, runner: int) -> None:
    """Leave the server to a separate process, once it can be used."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        sys.exit(0 if os.read(reading, 1) else "PostgreSQL did not start")
    os.setsid()
    os.close(reading)
    _keep(folder, runner, writing)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
