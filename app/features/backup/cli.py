"""`backup` and `restore`: everything that a bridge keeps, in one sealed file."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
from typer import Argument, Option

from app.config import Configuration, find_secret_key
from app.errors import BackupUnusable
from app.features.backup.archive import ArchiveContents
from app.features.backup.stream import Sealing, Secret, read_sealing
from app.features.backup.unpacking import check as check_archive
from app.model.text import size_words
from app.terminal.framing import commands, examples, read_configuration
from app.terminal.pending import show_pending

SHORTEST_PASSPHRASE: Final = 12
"""Characters: a backup can be tried against a list of words for as long as someone likes."""
SHOWN: Final = 5
"""Names of files that could not be read; the rest is counted."""

COMMANDS = commands()
Passphrase = Annotated[
    bool, Option("--passphrase", help="Seal or open it with a passphrase; asks for it.")
]
PassphraseFile = Annotated[
    Path | None,
    Option(metavar="FILE", exists=True, dir_okay=False, help="The file with the passphrase."),
]
Ask = Callable[[], str]
"""Asks the person at the terminal for the passphrase."""


@COMMANDS.command(
    "backup",
    epilog=examples(
        "backup /mnt/backups",
        "backup bridge.backup --passphrase-file /etc/agent-bridge/passphrase",
        "backup --check bridge.backup",
    ),
)
def back_up(
    target: Annotated[Path, Argument(metavar="TO", help="A new file, or a folder for one.")],
    *,
    check: Annotated[
        bool, Option("--check", help="Check this backup instead of making one.")
    ] = False,
    passphrase: Passphrase = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Back up everything, while the bridge runs.

    The backup is sealed: with a passphrase, else with BRIDGE_SECRET_KEY, which is then not in it.
    """
    configuration = read_configuration()
    ask = _passphrase_of(passphrase, passphrase_file, confirm=not check)
    if check:
        contents = check_archive(target, _secret_for(configuration, target, ask))
        _say(f"SHA-256: {_digest(target)}")
        _describe(contents)
        _say("The backup is whole and can be restored.")
        return
    from app.features.backup.service import back_up as write_archive  # noqa: PLC0415 - 1 s

    if target.is_dir():
        target /= time.strftime("agent-bridge-%Y%m%d-%H%M%S.backup", time.gmtime())
    kind: Sealing = "secret key" if ask is None else "passphrase"
    contents = write_archive(configuration, target, _secret_of(configuration, kind, ask))
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


@COMMANDS.command(epilog=examples("restore /mnt/backups/agent-bridge-20260101-120000.backup"))
def restore(
    source: Annotated[
        Path, Argument(metavar="FILE", exists=True, dir_okay=False, help="The backup.")
    ],
    *,
    passphrase: Passphrase = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Restore a backup on an empty machine.

    Nothing is overwritten: DATA_DIR and the database have to be empty. The bridge then starts
    paused, and `resume --all` lets it go on.
    """
    from app.features.backup.service import restore as restore_archive  # noqa: PLC0415 - 1 s

    configuration = read_configuration()
    ask = _passphrase_of(passphrase, passphrase_file, confirm=False)
    secret = _secret_for(configuration, source, ask)
    _describe(restore_archive(configuration, source, secret))
    _say(f"Restored to {configuration.data_dir}. Everything is paused. What goes on later:")
    show_pending(configuration)
    _say(
        "Start it with `agent-bridge serve`, look at the page, and let it go on with "
        "`agent-bridge resume --all`. Stop the bridge that the backup was made of first."
    )


def _passphrase_of(wanted: bool, file: Path | None, *, confirm: bool) -> Ask | None:
    if file is not None:
        return lambda: file.read_text().strip()
    if not wanted:
        return None
    return lambda: str(
        typer.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
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


def _describe(contents: ArchiveContents) -> None:
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
