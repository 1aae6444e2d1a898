"""Measures what a process tree uses: its tasks, its memory and the disk in its folders.

Memory is what belongs to the processes alone: anonymous and shared memory, swap, and files in file
systems that live in memory. What can be read again from a disk does not count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.children.proc_table import ProcTable, with_descendants

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BLOCK: Final = 512
"""The unit of `st_blocks` on every file system."""
_SCRATCH: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108
_OWN_MEMORY: Final = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process tree uses."""

    tasks: int
    """Processes and threads."""
    memory_bytes: int


def measure_tree(proc_table: ProcTable, root: int, *, exact_above: int) -> Usage:
    """Measure a process and its descendants; blocking.

    Shared memory is counted exactly only beyond `exact_above` bytes: that takes long.
    """
    family = [proc_table[pid] for pid in with_descendants(proc_table, [root]) if pid in proc_table]
    pids = [entry.pid for entry in family]
    scratch = _scratch_bytes(pids)
    memory = sum(entry.resident_pages for entry in family) * _PAGE + scratch
    if memory > exact_above:
        memory = sum(map(_own_memory, pids)) + scratch
    return Usage(sum(entry.tasks for entry in family), memory)


def measure_folders(folders: Iterable[Path]) -> int:
    """Return how many bytes of disk the folders use, without following links; blocking."""
    total = 0
    waiting = [str(folder) for folder in folders]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue  # it was removed meanwhile, or the bridge cannot read it
    return total


def _own_memory(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it ended meanwhile
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(_OWN_MEMORY))


def _scratch_bytes(pids: Iterable[int]) -> int:
    """Sum up the file systems for temporary files that only these processes see."""
    known = {device for path in _SCRATCH if (device := _device(path)) is not None}
    total = 0
    for pid in pids:
        for path in _SCRATCH:
            inside = f"/proc/{pid}/root{path}"
            device = _device(inside)
            if device is not None and device not in known:
                known.add(device)
                total += _used_bytes(inside)
    return total


def _device(path: str) -> int | None:
    try:
        return os.stat(path).st_dev  # noqa: PTH116 - called for every process, every second
    except OSError:
        return None


def _used_bytes(path: str) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize
