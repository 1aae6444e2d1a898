"""Backs up everything that a bridge keeps, and restores it on an empty machine.

The database first: every file that one of its rows names is there already. Left out is what a
bridge makes again: mirrors, gates, sockets and locks.
"""

from __future__ import annotations

import hmac
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from app.clock import SystemClock
from app.config import BridgeSecrets, Configuration, ensure_secrets, find_secret_key
from app.config.process import SECRETS
from app.descent import discard, remove
from app.errors import BackupUnusable
from app.features.backup.archive import ArchiveContents, packing
from app.features.backup.store import StoreCopy, check_fit, copy_in, copy_out
from app.features.backup.stream import Secret
from app.features.backup.unpacking import unpack
from app.store.database import FILE_NAME, MOVED_NAME, locked

DATABASE: Final = "database"
_LEFT_OUT: Final = {
    *(f"{FILE_NAME}{ending}" for ending in ("", "-wal", "-shm", "-journal")),
    MOVED_NAME,
    SECRETS,
    "bridge.sock",
    "gates",
    "git.config",
    "mirrors",
    "reserve",
    "tools",
}
LEFT_SECONDS: Final = 86_400.0
"""A copy of the database that is older belongs to no backup that still runs."""
_SCRATCH: Final = ".backing-up-"
_RESTORING: Final = "restoring"


def back_up(configuration: Configuration, target: Path, secret: Secret) -> ArchiveContents:
    """Write a backup to a file while the bridge runs, or not.

    Raises:
        BackupUnusable: the file is there already, or within what is backed up.
        StoreUnavailable: the database cannot be read.
    """
    data, secrets = configuration.data_dir, ensure_secrets(configuration)
    for name, folder in _folders(configuration).items():
        if target.resolve().is_relative_to(folder.resolve()):
            raise BackupUnusable(
                f"a backup within {name.upper()}_DIR would be lost with it: give another folder"
            )
    _clear(data)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=data) as scratch:
        copied = copy_out(configuration.database_url, Path(scratch))
        contents = ArchiveContents(
            created_at=SystemClock().now(),
            release=version("agent-bridge"),
            database=copied.database,
            revision=copied.revision,
            key=_mark(secrets.secret_key),
            rows=copied.rows,
        )
        with packing(target, secret, contents) as packer:
            packer.add_tree(DATABASE, Path(scratch))
            for name, folder in _folders(configuration).items():
                packer.add_tree(name, folder, _is_left_out)
            if secret.kind == "passphrase":
                packer.add_bytes(SECRETS, secrets.write().encode())
    return contents


def restore(configuration: Configuration, source: Path, secret: Secret) -> ArchiveContents:
    """Restore a backup into an empty DATA_DIR and an empty database; it starts paused.

    Raises:
        BackupUnusable: it cannot be read, or something is there already.
        DataDirInUse: a bridge runs there.
        StoreUnavailable: the database cannot be written.
    """
    data = configuration.data_dir
    with locked(data):
        # Next to where it goes: it is only renamed then, and a folder may be too deep to be copied.
        drafts = {name: each / _RESTORING for name, each in _folders(configuration).items()}
        for draft in drafts.values():
            if os.path.lexists(draft):
                raise BackupUnusable(
                    f"an earlier restore was cut off: empty {str(draft.parent)!r}, then repeat it"
                )
        try:
            for draft in drafts.values():
                draft.mkdir(mode=0o700, parents=True)
            contents = unpack(source, secret, drafts["data"], drafts)
            moves = _plan(configuration, drafts)
            _check(configuration, contents, drafts["data"], moves)
            _move(moves)
            try:
                copied = StoreCopy(contents.database, contents.revision, contents.rows)
                now = SystemClock().now()
                copy_in(configuration.database_url, drafts["data"] / DATABASE, copied, now)
            except BaseException:
                _move({new: old for old, new in moves.items()})
                raise
        finally:
            for draft in drafts.values():
                remove(draft)
    return contents


def _clear(data: Path) -> None:
    """Remove the copies of backups that were killed."""
    for left in data.glob(f"{_SCRATCH}*"):
        if left.stat().st_mtime < SystemClock().now() - LEFT_SECONDS:
            discard(left)


def _folders(configuration: Configuration) -> dict[str, Path]:
    """Name the folders of a bridge: one, unless it shares files with others."""
    data, shared = configuration.data_dir, configuration.shared_dir
    return {"data": data} if shared == data else {"data": data, "shared": shared}


def _plan(configuration: Configuration, drafts: Mapping[str, Path]) -> dict[Path, Path]:
    """Say where each file and folder of a backup goes."""
    data, shared = configuration.data_dir, configuration.shared_dir
    draft = drafts["data"]
    moves = {
        each: target / each.name
        for found, target in (
            (draft / "data", data),
            (drafts.get("shared", draft) / "shared", shared),
        )
        if found.is_dir()
        for each in sorted(found.iterdir())
    }
    if (draft / SECRETS).exists():
        moves[draft / SECRETS] = shared / SECRETS
    return moves


def _check(
    configuration: Configuration, contents: ArchiveContents, draft: Path, moves: Mapping[Path, Path]
) -> None:
    """Refuse to mix a backup with what is there."""
    copied = StoreCopy(contents.database, contents.revision, contents.rows)
    check_fit(configuration.database_url, copied)
    for target in moves.values():
        if os.path.lexists(target):
            raise BackupUnusable(
                f"{str(target)!r} is there already. A backup is restored to an empty DATA_DIR"
            )
    key = find_secret_key(configuration)
    if key is None and (draft / SECRETS).exists():
        held = BridgeSecrets.parse((draft / SECRETS).read_text())
        key = None if held is None else held.secret_key
    if key is None or not hmac.compare_digest(_mark(key), contents.key):
        raise BackupUnusable(
            "what is sealed in its database needs the BRIDGE_SECRET_KEY of the bridge that made it:"
            " set that"
        )


def _move(moves: Mapping[Path, Path]) -> None:
    for old, new in moves.items():
        new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(old, new)


def _mark(key: SecretStr) -> str:
    """Return what tells a key apart from others without giving it away."""
    return hmac.digest(key.get_secret_value().encode(), b"agent-bridge backup key", "sha256").hex()


def _is_left_out(path: str) -> bool:
    first, *rest = path.split("/", 1)
    if rest:
        return False
    ours = first.startswith((_SCRATCH, _RESTORING)) or first.endswith(".lock")
    return ours or first in _LEFT_OUT
