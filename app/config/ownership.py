"""Tells who else can read or write a file or folder, by its owner and its mode; pure."""

from __future__ import annotations

import os
import stat


def is_others(about: os.stat_result, user: int) -> bool:
    """Tell whether it belongs to another user; root does not count."""
    return about.st_uid not in (user, 0)


def others_can_write(about: os.stat_result) -> bool:
    """Tell whether users other than the owner can change it."""
    return bool(about.st_mode & _bits(about, stat.S_IWGRP, stat.S_IWOTH))


def others_can_read(about: os.stat_result) -> bool:
    """Tell whether users other than the owner can read it."""
    return bool(about.st_mode & _bits(about, stat.S_IRGRP, stat.S_IROTH))


def _bits(about: os.stat_result, group: int, others: int) -> int:
    """Ignore the group if it is the owner's own: most systems create one for every user."""
    return others if about.st_gid == about.st_uid else group | others
