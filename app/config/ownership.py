"""Tells who else can read, write or replace a file or folder, by owners and modes."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def is_others(about: os.stat_result, user: int) -> bool:
    """Tell whether it belongs to another user; root does not count."""
    return about.st_uid not in (user, 0)


def others_can_write(about: os.stat_result) -> bool:
    """Tell whether users other than the owner can change it."""
    return bool(about.st_mode & _bits(about, stat.S_IWGRP, stat.S_IWOTH))


def others_can_read(about: os.stat_result) -> bool:
    """Tell whether users other than the owner can read it."""
    return bool(about.st_mode & _bits(about, stat.S_IRGRP, stat.S_IROTH))


def everyone_can_write(about: os.stat_result) -> bool:
    """Tell whether every user of the machine can change it."""
    return bool(about.st_mode & stat.S_IWOTH)


def find_open_folder(path: Path) -> Path | None:
    """Return a folder above a path in which every user can replace what is there; None if none.

    In one with the sticky bit, such as /tmp, only its owner replaces a file.
    """
    above = dict.fromkeys((*path.absolute().parents, *path.resolve().parents))
    for folder in above:
        with suppress(OSError):  # it does not exist yet
            about = folder.stat()
            if everyone_can_write(about) and not about.st_mode & stat.S_ISVTX:
                return folder
    return None


def find_writers(path: Path) -> tuple[str, str] | None:
    """Say how other users can change a file that decides what runs, and the remedy; None if not."""
    about = path.stat()
    if stat.S_ISREG(about.st_mode) and others_can_write(about):
        return "is writable by other users", "Check its content, then run chmod 600 on it."
    folder = find_open_folder(path)
    if folder is None:
        return None
    remedy = f"Check its content, then run chmod o-w {folder}, or move it to a folder of your own."
    return f"is in {folder}, which is writable by other users", remedy


def _bits(about: os.stat_result, group: int, others: int) -> int:
    """Ignore the group if it is the owner's own: most systems create one for every user."""
    return others if about.st_gid == about.st_uid else group | others
