"""Names this process among the bridges that share a database, and opens the way to the others."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from app.clock import Clock
from app.config import Configuration
from app.signals import ALONE, Signals
from app.store.database import Database

NAME_FILE = "member"
HOST_CHARACTERS = 24
"""Of a member's name: with the rest it fits into the name of a channel of PostgreSQL."""


def read_name(data_dir: Path) -> str:
    """Return the name of the member that works in a DATA_DIR; it stays the same for good."""
    file = data_dir / NAME_FILE
    name = file.read_text().strip() if file.exists() else ""
    if not name:
        name = f"{socket.gethostname()[:HOST_CHARACTERS]}-{secrets.token_hex(4)}"
        file.write_text(name)
    return name


def open_signals(configuration: Configuration, database: Database, clock: Clock) -> Signals:
    """Return what reaches the other members; on SQLite there are none."""
    if configuration.database_file is not None:
        return ALONE
    # The import takes 0.2 s, and only PostgreSQL needs it.
    from app.store.database.signals import Notifications  # noqa: PLC0415

    name = read_name(configuration.data_dir)
    return Notifications(database, configuration.database_url, name, clock)
