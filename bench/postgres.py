"""A PostgreSQL server for the bench, as durable as one in use: every commit is synced."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from bench.machine import LOOK_SECONDS, ProgramFailed, family_cpu_seconds
from tests.support.postgres import find_programs, server_user

USER = "bridge"
SETTINGS = {"listen_addresses": "", "max_connections": "200", "log_min_messages": "panic"}
MISSING = "no PostgreSQL on this machine: install Debian's postgresql"


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server."""

    folder: Path
    process: subprocess.Popen[bytes]

    def create(self, name: str) -> str:
        """Create a database and return its address."""
        host = str(self.folder)
        with psycopg.connect(host=host, user=USER, dbname="postgres", autocommit=True) as database:
            database.execute(f'create database "{name}"')
        return f"postgresql://{USER}@/{name}?host={quote(host)}"

    def cpu_seconds(self) -> float:
        """Tell how much time all its processes have spent on a core, also those that have ended."""
        return family_cpu_seconds(self.process.pid)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server; there must be one on this machine."""
    programs = find_programs()
    assert programs is not None, MISSING
    # A socket's path is short, and the user of the server has to reach it.
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-", dir="/tmp"))
    folder.chmod(0o755)
    user = server_user()
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", USER, "--auth=trust"]
    initdb += ["--encoding=UTF8"]
    subprocess.run(initdb, user=user, check=True, stdout=subprocess.DEVNULL, cwd="/")
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    process = subprocess.Popen(
        [programs / "postgres", "-D", data, "-k", folder, *settings],
        user=user,
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        ready = [str(programs / "pg_isready"), "-q", "-h", str(folder)]
        while subprocess.run(ready, check=False).returncode:
            if process.poll() is not None:
                raise ProgramFailed("PostgreSQL did not start")
            time.sleep(LOOK_SECONDS)
        yield PostgresServer(folder, process)
    finally:
        process.send_signal(signal.SIGINT)  # also ends its children
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
