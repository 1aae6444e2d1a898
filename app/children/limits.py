"""Defines what sessions may use, hardens the bridge's own process, and keeps a reserve of disk.

The kernel enforces some limits, the bridge watches the others. Address space is never limited: V8
and other runtimes reserve tens of gigabytes that they never use.

Undumpable is not isolation: it guards the bridge's /proc and memory, not its files, and not
against root.

The bridge is no subreaper. An agent's orphans would become its children and, once dead, zombies
that only a wait for any child could collect, which takes statuses away from asyncio. The sandbox's
pid namespace catches orphans; without a sandbox each agent has its own reaper.

Code that writes a lot checks the disk first. If it fills up anyway, the reserve is released so
that the store can still write what people must be told.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import re
import resource
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from app.errors import DiskNearlyFull

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


logger = logging.getLogger(__name__)

WATERMARK_BYTES: Final = 1024**3
"""What stays free: enough for the store and for running agents."""
RESERVE_BYTES: Final = 64 * 1024**2
"""Some thousand messages, and the store's journal."""
RESERVE: Final = "reserve"
"""The name of the file that holds it."""
_WATERMARK_SHARE: Final = 10
_RESERVE_SHARE: Final = 20
"""On a small disk: at most this part of it."""


def identify(folder: Path) -> str:
    """Return the name that marks a folder's disk, and changes with it; it is made if necessary.

    Raises:
        OSError: it cannot be read or written.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = folder / ".machine"
    if not mark.exists():
        name = uuid4().hex
        new = folder / f".machine.{name}"
        new.write_text(name)
        with contextlib.suppress(
            FileExistsError
        ):  # another machine that shares the folder was first
            mark.hardlink_to(new)
        new.unlink()
    return mark.read_text()


class DiskSpace:
    """The file system that holds a folder."""

    def __init__(self, folder: Path, *, watermark: int | None = None) -> None:
        self._folder = folder
        self._reserve = folder / RESERVE
        self._watermark = watermark

    def free(self) -> int:
        """Return how many bytes are free; blocks for some microseconds."""
        return shutil.disk_usage(self._place()).free

    def watermark(self) -> int:
        """Return how many bytes must stay free."""
        if self._watermark is not None:
            return self._watermark
        return min(WATERMARK_BYTES, shutil.disk_usage(self._place()).total // _WATERMARK_SHARE)

    async def check_room(self, more: int = 0) -> None:
        """Check that there is room for this many more bytes.

        Raises:
            DiskNearlyFull: there is not.
        """
        free, watermark = await asyncio.to_thread(lambda: (self.free(), self.watermark()))
        if free - more < watermark:
            raise DiskNearlyFull(free, watermark)

    def keep_reserve(self) -> None:
        """Create the reserve when there is room, release it when the disk is full; blocking."""
        usage = shutil.disk_usage(self._place())
        size = min(RESERVE_BYTES, usage.total // _RESERVE_SHARE)
        if self._reserve.exists():
            if usage.free < size // 2:
                logger.warning("disk full: released the store's reserve of %d bytes", size)
                self._reserve.unlink(missing_ok=True)
        elif usage.free > self.watermark() + size:
            self._take_reserve(size)

    def _take_reserve(self, size: int) -> None:
        with contextlib.suppress(OSError):  # the bridge also works without a reserve
            with self._reserve.open("wb") as file:
                self._reserve.chmod(0o600)
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:  # macOS
                    file.write(bytes(size))
            return
        self._reserve.unlink(missing_ok=True)

    def _place(self) -> Path:
        return next(each for each in (self._folder, *self._folder.parents) if each.exists())
