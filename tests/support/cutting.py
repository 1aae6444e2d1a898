"""Kills a process at a statement of a migration, run as by this release or as by older ones."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from alembic.config import Config
from procrastinate.schema import SchemaManager
from sqlalchemy import Engine, event, inspect, select

from alembic import command
from app.store.database import Database, roll_back
from app.store.dialects import is_postgresql
from app.store.tables import metadata
from tests.support.nursery import ROOT, SECONDS, nursery

Way = Literal["now", "released", "back"]
NEVER = 0
WITH_JOBS = "0007"
"""The migration that came with several bridges on one database."""

ROWS = (
    "insert into place (service, name) values ('web', 't1')",
    "insert into session (agent, place, created_at, updated_at) values ('claude', 1, 1, 1)",
    "insert into surface (service, external, agent, session, place)"
    " values ('web', 't1', 'claude', 1, 1)",
    "insert into turn (session, surface, state, created_at) values (1, 1, 'prompted', 0)",
    "insert into ask (session, turn, generation, kind, call, title, options, deadline, created_at)"
    " values (1, 1, 1, 'permission', 'c', 'May I?', '[]', 99, 0)",
    "insert into checkout (session, number, name, url, way) values (1, 1, 'n', 'u', 'clone')",
)
"""A turn of an agent that asks a person, with a clone; every version has these columns."""


def run_released(engine: Engine, revision: str) -> None:
    """Migrate as the releases up to 0007 did: the driver begins when the first row is written."""
    config = Config()
    config.set_main_option("script_location", str(ROOT / "alembic"))
    with engine.connect() as connection:
        connection.execution_options(isolation_level="SERIALIZABLE")
        with connection.begin():
            config.attributes["connection"] = connection
            command.upgrade(config, revision)


def build(url: str, revision: str | None) -> None:
    """Make a database of an earlier version with rows; without a version an empty one."""
    database = Database(url)
    if revision is not None:
        run_released(database.engine, revision)
        if revision >= WITH_JOBS and is_postgresql(database.engine.dialect):
            _make_jobs(database.engine)
        with database.engine.begin() as connection:
            for statement in ROWS:
                connection.exec_driver_sql(statement)
    database.engine.connect().close()  # makes the file
    database.close()


def _make_jobs(engine: Engine) -> None:
    """Make Procrastinate's tables as the releases up to 0008 did: in their own migration."""
    with engine.begin() as connection:
        connection.connection.cursor().execute(SchemaManager.get_schema())


def upgrade(url: str) -> dict[str, Any]:
    """Upgrade a database as a start does; return its schema and its rows."""
    database = Database(url)
    database.open()
    try:
        with database.engine.connect() as connection:
            found = inspect(connection)
            return {
                table.name: (
                    sorted(
                        (each["name"], str(each["type"]), each["nullable"], each["default"])
                        for each in found.get_columns(table.name)
                    ),
                    sorted(str(each["name"]) for each in found.get_indexes(table.name)),
                    [dict(row) for row in connection.execute(select(table)).mappings()],
                )
                for table in metadata.sorted_tables
            }
    finally:
        database.close()


def cut(folder: Path, url: str, way: Way, at: int, name: str = "plan") -> bool:
    """Upgrade in a process that kills itself before a statement; tell whether it came to that."""
    plan = folder / f"{name}.json"
    plan.write_text(json.dumps({"url": url, "way": way, "at": at}))
    log = folder / f"{name}.log"
    fork = nursery().start(__name__, plan, log)
    assert fork.stdout is not None
    with fork.stdout:
        status = fork.wait(SECONDS)
    assert status in (0, -signal.SIGKILL), log.read_text()
    return status != 0


def main(plan: str) -> None:
    """Run a plan; the nursery calls this in a new process."""
    told = json.loads(Path(plan).read_text())
    database = Database(told["url"])
    passed = count(1)

    def pass_statement(*_: object) -> None:
        if next(passed) == told["at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    engine = Engine if told["way"] == "back" else database.engine
    event.listen(engine, "before_cursor_execute", pass_statement)
    event.listen(engine, "commit", pass_statement)
    ways: dict[Way, Callable[[], object]] = {
        "now": database.upgrade,
        "released": partial(run_released, database.engine, "head"),
        "back": partial(roll_back, told["url"]),
    }
    ways[told["way"]]()
