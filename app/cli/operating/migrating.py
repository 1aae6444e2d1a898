"""`migrate`: moves the database of this installation to PostgreSQL."""

from __future__ import annotations

import sys

from pydantic import SecretStr

from app.config import Configuration
from app.config.safety import read_database_url
from app.errors import Conflict
from app.main import bridge_id
from app.store.database import Database, is_postgresql_address, locked, note_move
from app.store.moving import move
from app.store.reading import name_store


def migrate(configuration: Configuration, to: str) -> None:
    """Move all rows of the file to a server, and say what to do next.

    Raises:
        BridgeError: there is nothing to move, a bridge runs, or a database cannot be used.
    """
    file = configuration.database_file
    if file is None:
        raise Conflict("this installation is on PostgreSQL already: DATABASE_URL says so")
    if not file.exists():
        raise Conflict("there is no database to move: set DATABASE_URL and start the bridge")
    address = read_database_url(SecretStr(to), configuration.data_dir)
    if not is_postgresql_address(address):
        raise Conflict("--to is the address of a PostgreSQL database: postgresql://user@host/name")
    source, target = Database(configuration.database_url), Database(address)
    try:
        with locked(configuration.data_dir):
            source.upgrade()
            move(source, target, bridge_id(configuration), _tell)
            note_move(configuration.data_dir, name_store(address))
    finally:
        source.close()
        target.close()
    sys.stdout.write(
        f"Every row is in {name_store(address)} and was checked. Set DATABASE_URL to that address, "
        f"with its password, and start the bridge. {file} is unchanged.\n"
    )


def _tell(name: str, rows: int) -> None:
    if rows:
        sys.stderr.write(f"{name}: {rows}\n")
