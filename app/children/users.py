"""Assigns user ids to the agents of a bridge that runs as root, and gives them their files.

An id is never reused for another agent: the files of a removed agent stay its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from app.children.file_lock import FileLock
from app.descent import walk

_FILE: Final = "agent-users.json"
_IDS: Final = range(60578, 61184)
"""Not assigned by Debian, Fedora or systemd (systemd.io/UIDS-GIDS); containers map them."""


def allocate_users(shared_dir: Path, agents: Iterable[str]) -> dict[str, int]:
    """Return the user id of each agent, the same as last time; new ones are stored.

    Raises:
        OSError: the list cannot be read or written.
    """
    file = shared_dir / _FILE
    with FileLock(file.with_suffix(".lock")):
        return _allocate(file, agents)


def _allocate(file: Path, agents: Iterable[str]) -> dict[str, int]:
    known = json.loads(file.read_text()) if file.exists() else {}
    free = iter(sorted(set(_IDS) - set(known.values())))
    users = known | {agent: next(free) for agent in agents if agent not in known}
    if users != known:
        new = file.with_suffix(".new")
        new.write_text(json.dumps(users, indent=2))
        new.replace(file)
    return users


def give(path: Path, user: int | None, *, always: bool = False) -> None:
    """Make a user the owner of a path and all in it, without following links.

    Does nothing if the user owns the path itself already, unless `always`.
    """
    if user is None or (not always and os.lstat(path).st_uid == user):
        return
    for found in walk(path):
        with suppress(FileNotFoundError):
            os.chown(found.name, user, user, dir_fd=found.folder, follow_symlinks=False)
    # Last: if this is interrupted, the next call starts over.
    os.chown(path, user, user, follow_symlinks=False)
