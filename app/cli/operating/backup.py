"""`backup` and `restore`: the secret that seals a backup, and words about what was done."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from app.cli.operating.pending import show_pending
from app.config import Configuration, find_secret_key
from app.errors import BackupUnusable
from app.features.backup.archive import Contents
from app.features.backup.service import back_up
from app.features.backup.service import restore as restore_archive
from app.features.backup.stream import Sealing, Secret, read_sealing
from app.features.backup.unpacking import check as check_archive
from app.model.file_names import size_words

SHORTEST_PASSPHRASE: Final = 12
"""Characters: a backup can be tried against a list of words for as long as someone likes."""
SHOWN: Final = 5
"""Names of files that could not be read; the rest is counted."""

Ask = Callable[[], str]
"""Asks the person at the terminal for the passphrase."""


def backup(configuration: Configuration, target: Path, passphrase: Ask | None) -> None:
    """Write a backup, and say what opens it.

    Raises:
        BridgeError: it cannot be written.
    """
    if target.is_dir():
        target /= time.strftime("agent-bridge-%Y%m%d-%H%M%S.backup", time.gmtime())
    kind: Sealing = "secret key" if passphrase is None else "passphrase"
    contents = back_up(configuration, target, _secret_of(configuration, kind, passphrase))
    _say(f"Backup: {target} ({size_words(target.stat().st_size)})")
    _say(f"SHA-256: {_digest(target)}")
    _describe(contents)
    if kind == "passphrase":
        _say("Sealed with the passphrase. It holds everything, the bridge's own secrets too.")
    else:
        _say(
            "Sealed with BRIDGE_SECRET_KEY, which is not in it: keep that key in another place. "
            "Without it the backup cannot be read."
        )
    _say("Not in it: the settings file, mirrors and clones (states of clones are in it).")


def check(configuration: Configuration, source: Path, passphrase: Ask | None) -> None:
    """Check every byte of a backup, and that it can be restored.

    Raises:
        BridgeError: it cannot be read, or is damaged.
    """
    secret = _secret_for(configuration, source, passphrase)
    contents = check_archive(source, secret)
    _say(f"SHA-256: {_digest(source)}")
    _describe(contents)
    _say("The backup is whole and can be restored.")


def restore(configuration: Configuration, source: Path, passphrase: Ask | None) -> None:
    """Restore a backup, and show what will be sent once the bridge goes on.

    Raises:
        BridgeError: it cannot be read, or something is there already.
    """
    secret = _secret_for(configuration, source, passphrase)
    contents = restore_archive(configuration, source, secret)
    _describe(contents)
    _say(f"Restored to {configuration.data_dir}. Everything is paused. What goes on later:")
    show_pending(configuration)
    _say(
        "Start it with `agent-bridge serve`, look at the page, and let it go on with "
        "`agent-bridge resume --all`. Stop the bridge that the backup was made of first."
    )


def _secret_for(configuration: Configuration, source: Path, passphrase: Ask | None) -> Secret:
    with source.open("rb") as file:
        kind = read_sealing(file)
    if kind == "passphrase" and passphrase is None:
        raise BackupUnusable("it is sealed with a passphrase: add --passphrase")
    return _secret_of(configuration, kind, passphrase)


def _secret_of(configuration: Configuration, kind: Sealing, passphrase: Ask | None) -> Secret:
    if kind == "passphrase" and passphrase is not None:
        words = passphrase()
        if len(words) < SHORTEST_PASSPHRASE:
            raise BackupUnusable(f"the passphrase needs {SHORTEST_PASSPHRASE} characters or more")
        return Secret(kind, words)
    key = find_secret_key(configuration)
    if key is None:
        raise BackupUnusable(
            "it is sealed with the BRIDGE_SECRET_KEY of the bridge that made it: set that, or put "
            "the file `secrets` of that bridge into SHARED_DIR, else DATA_DIR"
        )
    return Secret("secret key", key.get_secret_value())


def _describe(contents: Contents) -> None:
    made = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(contents.created_at))
    rows = sum(contents.rows.values())
    _say(
        f"Made {made} by release {contents.release}: {contents.database} at migration "
        f"{contents.revision}, {rows} rows, {len(contents.files)} files"
    )
    for name in contents.missing[:SHOWN]:
        _say(f"Could not be read: {name}")
    if len(contents.missing) > SHOWN:
        _say(f"Could not be read: {len(contents.missing) - SHOWN} more")


def _digest(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
