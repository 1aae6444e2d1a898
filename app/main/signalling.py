"""Opens the way to the other members of an installation, where there can be some."""

from __future__ import annotations

from app.config import Configuration
from app.core.ports import Clock
from app.core.signals import ALONE, Signals
from app.main.naming import read_name
from app.store.database import Database


def open_signals(configuration: Configuration, database: Database, clock: Clock) -> Signals:
    """Return what reaches the other members; on SQLite there are none."""
    if configuration.database_file is not None:
        return ALONE
    # The import takes 0.2 s, and only PostgreSQL needs it.
    from app.store.signals import Notifications  # noqa: PLC0415

    name = read_name(configuration.data_dir)
    return Notifications(database, configuration.database_url, name, clock)
