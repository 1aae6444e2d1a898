"""What the bridge does to its own process so that children cannot look into it.

Undumpable is not isolation: it guards /proc and memory of the bridge, not its files, and not
against root.

The bridge is no subreaper. Orphans of an agent would become its children and, once dead, zombies
that only a wait for any child could collect, which takes statuses away from asyncio. The marker
and the pid namespace of the sandbox find orphans without it.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_PR_GET_DUMPABLE: Final = 3  # linux/prctl.h
_PR_SET_DUMPABLE: Final = 4  # linux/prctl.h


def make_undumpable() -> bool:
    """Close /proc/<bridge>/environ and memory to processes of the same user; say whether it held.

    Children are not concerned: a program that is executed is dumpable again.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return bool(prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)
