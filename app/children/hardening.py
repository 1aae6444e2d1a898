"""Hardens the bridge's own process against its children, and raises its file limit.

Undumpable is not isolation: it guards the bridge's /proc and memory, not its files, and not
against root.

The bridge is no subreaper. An agent's orphans would become its children and, once dead, zombies
that only a wait for any child could collect, which takes statuses away from asyncio. The sandbox's
pid namespace catches orphans; without a sandbox each agent has its own reaper.
"""

from __future__ import annotations

import contextlib
import ctypes
import resource
import sys
from typing import Final

_PR_GET_DUMPABLE: Final = 3  # linux/prctl.h
_PR_SET_DUMPABLE: Final = 4  # linux/prctl.h


def raise_file_limit() -> int:
    """Raise the limit of open files and sockets to the system's maximum, and return it.

    The soft limit is 1024 nearly everywhere, for programs that use select().
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS reports a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def make_undumpable() -> bool:
    """Close /proc/<bridge>/environ and memory to the user's other processes; return success.

    Children are not affected: an executed program is dumpable again.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return bool(prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)
