"""Defines a session's resource limits, and hardens the bridge's own process against its children.

The kernel enforces some limits, the bridge watches the others. Address space is never limited: V8
and other runtimes reserve tens of gigabytes that they never use.

Undumpable is not isolation: it guards the bridge's /proc and memory, not its files, and not
against root.

The bridge is no subreaper. An agent's orphans would become its children and, once dead, zombies
that only a wait for any child could collect, which takes statuses away from asyncio. The sandbox's
pid namespace catches orphans; without a sandbox each agent has its own reaper.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1024**2
_SCRATCH_SHARE: Final = 4
"""Each folder for temporary files is in memory and gets this share of the memory limit."""
_OOM_SCORE: Final = 500
"""Halfway to "always first": a small agent still outlives a build that takes all the memory."""
_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CGROUP: Final = Path("/proc/self/cgroup")
"""Which cgroup the bridge is in: that of its service, or inside a container the topmost one."""
_PR_GET_DUMPABLE: Final = 3  # linux/prctl.h
_PR_SET_DUMPABLE: Final = 4  # linux/prctl.h


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What one session may use."""

    processes: int
    """Processes and threads."""
    memory_bytes: int
    """Of all its processes together, with what is in its /tmp, /var/tmp and /dev/shm."""
    open_files: int
    """Of each process."""
    file_bytes: int
    """Of each file that is written."""
    disk_bytes: int
    """In its workspace and its home."""

    @property
    def words(self) -> tuple[tuple[str, int], ...]:
        """What `entry` sets before the agent starts."""
        return (
            ("nofile", self.open_files),
            ("fsize", self.file_bytes),
            ("core", 0),
            # Counted per user and user namespace: per session where bubblewrap makes a namespace,
            # per agent where the agent has its own user id, not at all for root.
            ("nproc", self.processes),
            ("oom", _OOM_SCORE),
        )

    @property
    def description(self) -> str:
        """The limits, described for people."""
        return (
            f"{self.processes} processes, {_size(self.memory_bytes)} of memory and "
            f"{_size(self.disk_bytes)} of disk per session, measured by the bridge; "
            f"{self.open_files} open files per process and {_size(self.file_bytes)} per file, "
            "enforced by the kernel"
        )

    @property
    def scratch_bytes(self) -> int:
        """How large each folder for temporary files may get."""
        return self.memory_bytes // _SCRATCH_SHARE


def bound(pid: int, *, memory_bytes: int, cpu_seconds: int) -> None:
    """Bound a process of the bridge that has just started, and what it starts in turn.

    Its own memory only, not the files that it maps: git maps whole packs.
    """
    if not sys.platform.startswith("linux"):
        return
    kinds = {resource.RLIMIT_DATA: memory_bytes, resource.RLIMIT_CPU: cpu_seconds}
    with suppress(ProcessLookupError):  # it has ended already
        for kind, value in kinds.items():
            _, hard = resource.prlimit(pid, kind)
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(pid, kind, (most, most))
    with suppress(OSError):  # a kernel without it, or a bridge that is a more likely victim already
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(_OOM_SCORE))


def _size(number: int) -> str:
    mebibytes = number // MEBIBYTE
    return f"{mebibytes / 1024:.3g} GiB" if mebibytes >= 1024 else f"{mebibytes} MiB"


def default_memory_bytes(own: Path = _OWN_CGROUP, root: Path = _CGROUPS) -> int:
    """Return half of the memory that the bridge may use, by its cgroup and those around it."""
    allowed = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):  # there are no cgroups
        inside = re.search(r"(?m)^0::/(.*)$", own.read_text())
        here = root / (inside[1] if inside else "")
        for folder in (here, *here.parents):
            with suppress(OSError, ValueError):  # it has no limit
                allowed.append(int((folder / "memory.max").read_text()))
    return min(allowed) // 2


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
