"""`migrate`: the database, brought to this release or to another place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic import SecretStr
from typer import Option

from app.config import Configuration
from app.config.safety import read_database_url
from app.errors import Conflict, DataDirInUse
from app.store.database import Database, is_postgresql_address, locked, note_move, roll_back
from app.store.database.moving import move
from app.store.database.schema import HEAD_REVISION
from app.store.stores import name_store
from app.terminal.api import is_running
from app.terminal.framing import Yes, commands, confirm, examples, read_configuration

COMMANDS = commands()


@COMMANDS.command(
    epilog=examples(
        "migrate", "migrate --back", "migrate --to postgresql://bridge@db.example.com/bridge"
    )
)
def migrate(
    *,
    to: Annotated[
        str | None,
        Option(
            metavar="ADDRESS",
            help="Move it to an empty PostgreSQL database, with its password in PGPASSWORD or "
            "~/.pgpass. Every row is copied and then checked; the file stays as it is.",
        ),
    ] = None,
    back: Annotated[
        bool, Option("--back", help="Undo the newest migration, for the release before this one.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Bring the database to this release, or move it.

    No bridge may run meanwhile. A start brings it to the release too. If --to is cut off, run it
    again: it goes on where it ended. Then set DATABASE_URL and start the bridge.
    """
    if back and to is not None:
        raise typer.BadParameter("--back and --to exclude each other.")
    configuration = read_configuration()
    if to is not None:
        words = _move(configuration, to)
    elif back:
        confirm(
            "Undo the newest migration? What people allowed for longer, and attributes of "
            "sessions, are forgotten. Make a backup first.",
            yes=yes,
            otherwise="nothing was changed",
        )
        with _alone(configuration):
            revision = roll_back(configuration.database_url)
        words = (
            f"The database is at migration {revision}. Start the release before this one; this one "
            "would apply the migration again."
        )
    else:
        with _alone(configuration):
            database = Database(configuration.database_url)
            database.open()
            database.close()
        words = f"The database is at migration {HEAD_REVISION}."
    sys.stdout.write(f"{words}\n")


def _move(configuration: Configuration, to: str) -> str:
    """Move all rows of the file to a server; returns what to do next."""
    file = configuration.database_file
    if file is None:
        raise Conflict("this installation is on PostgreSQL already: DATABASE_URL says so")
    if not file.exists():
        raise Conflict("there is no database to move: set DATABASE_URL and start the bridge")
    address = read_database_url(SecretStr(to), configuration.data_dir)
    if not is_postgresql_address(address):
        raise Conflict("--to is the address of a PostgreSQL database: postgresql://user@host/name")

    def tell(name: str, rows: int) -> None:
        if rows:
            sys.stderr.write(f"{name}: {rows}\n")

    source, target = Database(configuration.database_url), Database(address)
    try:
        with locked(configuration.data_dir):
            source.upgrade()
            move(source, target, configuration.bridge_id, tell)
            note_move(configuration.data_dir, name_store(address))
    finally:
        source.close()
        target.close()
    return (
        f"Every row is in {name_store(address)} and was checked. Set DATABASE_URL to that address, "
        f"with its password, and start the bridge. {file} is unchanged."
    )


@contextmanager
def _alone(configuration: Configuration) -> Iterator[None]:
    if is_running(configuration.data_dir):
        raise DataDirInUse(str(configuration.data_dir))
    with locked(configuration.data_dir):
        yield
