"""`migrate`: brings the schema to this release, or back to the release before it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.cli.operating.pausing import NotConfirmed
from app.cli.running import is_running
from app.config import Configuration
from app.errors import DataDirInUse
from app.store.database import Database, locked
from app.store.rollback import roll_back
from app.store.schema import HEAD_REVISION

QUESTION = (
    "Undo the newest migration? What people allowed for longer, and attributes of sessions, are "
    "forgotten. "
    "Make a backup first."
)


def migrate_forward(configuration: Configuration) -> None:
    """Apply missing migrations, as a start does.

    Raises:
        BridgeError: a bridge runs, or the database cannot be used.
    """
    with _alone(configuration):
        database = Database(configuration.database_url)
        database.open()
        database.close()
    sys.stdout.write(f"The database is at migration {HEAD_REVISION}.\n")


def migrate_back(configuration: Configuration, confirm: Callable[[str], bool] | None) -> None:
    """Undo the newest migration, once `confirm` has said yes to it.

    Raises:
        BridgeError: a bridge runs, or the release before could not use the result.
    """
    if confirm is not None and not confirm(QUESTION):
        raise NotConfirmed("nothing was changed")
    with _alone(configuration):
        revision = roll_back(configuration.database_url)
    sys.stdout.write(
        f"The database is at migration {revision}. Start the release before this one; this one "
        "would apply the migration again.\n"
    )


@contextmanager
def _alone(configuration: Configuration) -> Iterator[None]:
    if is_running(configuration.data_dir):
        raise DataDirInUse(str(configuration.data_dir))
    with locked(configuration.data_dir):
        yield
