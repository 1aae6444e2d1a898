"""Measures what a process tree uses: its tasks, its memory and the disk in its folders.

Memory is what belongs to the processes alone: anonymous and shared memory, swap, and files in file
systems that live in memory. What can be read again from a disk does not count.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Final

from app.children.proc_table import ProcTable
from app.descent import walk

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BLOCK: Final = 512
"""The unit of `st_blocks` on every file system."""
_CLOSED: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
"""How a folder is opened that cannot be read; only Linux knows that."""
_READING: Final = stat.S_IRUSR | stat.S_IXUSR
_OWN_MEMORY: Final = (("Pss_Anon:", "SwapPss:"), ("Pss_Shmem:",))
"""What is private to processes, and what they share."""
_MAPPING: Final = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ [0-9a-f]+ ([0-9a-f]+):([0-9a-f]+) (\d+)")
"""The line of proc(5) that begins a mapping: its device and file are kept."""

_FileId = tuple[int, int]
"""The device and number of a file."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process tree uses."""

    tasks: int
    """Processes and threads."""
    memory_bytes: int


def measure_tree(tree: ProcTable, *, exact_above: int) -> Usage:
    """Measure the processes of a tree; blocking.

    Shared memory is counted exactly only beyond `exact_above` bytes: that takes long.
    """
    scratch, held = _scratch_bytes(tree), _held_files(tree)
    apart = scratch + sum(held.values())
    memory = sum(entry.resident_pages for entry in tree.values()) * _PAGE + apart
    if memory > exact_above:
        private, shared = (sum(map(partial(_own_memory, kinds), tree)) for kinds in _OWN_MEMORY)
        # What is mapped of a file without a name is shared memory too, and counted already.
        mapped = sum(_mapped_bytes(pid, held) for pid in tree) if held else 0
        memory = private + max(shared - mapped, 0) + apart
    return Usage(sum(entry.tasks for entry in tree.values()), memory)


def measure_folders(folders: Iterable[Path]) -> int:
    """Return how many bytes of disk the folders use, without following links; blocking."""
    total = 0
    waiting = list(folders)
    while waiting:
        folder = waiting.pop()
        closed: list[PurePosixPath] = []
        with _opened(folder):
            for found in walk(folder, unread=closed.append):
                with suppress(OSError):  # it was removed meanwhile, or the bridge cannot read it
                    total += found.stat().st_blocks * _BLOCK
        waiting += [folder / path for path in closed if path.parts]
    return total


@contextmanager
def _opened(folder: Path) -> Iterator[None]:
    """Let the owner read a folder while the block runs: an agent may have closed it."""
    with ExitStack() as stack:
        with suppress(OSError):  # it is gone, or another user's
            closed = os.open(folder, _CLOSED)
            stack.callback(os.close, closed)
            before = stat.S_IMODE(os.fstat(closed).st_mode)
            if before & _READING != _READING:
                # A descriptor like this one cannot be changed: its name in /proc can.
                name = Path(f"/proc/self/fd/{closed}")
                name.chmod(before | _READING)
                stack.callback(name.chmod, before)
        yield


def _own_memory(kinds: tuple[str, ...], pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # it ended meanwhile
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(kinds))


def _scratch_bytes(pids: Iterable[int]) -> int:
    """Sum up the file systems in memory that only these processes see, also in own namespaces."""
    known = {device for device, _ in _memory_mounts("self")}
    seen: set[str] = set()
    total = 0
    for pid in pids:
        namespace = _link(f"/proc/{pid}/ns/mnt")
        if namespace in seen:
            continue
        seen.add(namespace)
        for device, path in _memory_mounts(str(pid)):
            if device not in known:
                known.add(device)
                total += _used_bytes(f"/proc/{pid}/root{path}")
    return total


def _memory_mounts(pid: str) -> Iterator[tuple[str, str]]:
    """List the file systems in memory that a process sees: their devices and places."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return  # it ended meanwhile
    for line in lines:
        # proc(5): the device is the third word, the place the fifth; the kind follows a dash.
        words, _, more = line.partition(" - ")
        _, _, device, _, path, *_ = words.split(" ")
        if more.startswith("tmpfs "):
            yield device, re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), path)


def _held_files(pids: Iterable[int]) -> dict[_FileId, int]:
    """Find the files in memory that have no name and that these processes hold open: their sizes.

    Each is on a device of the kernel's own, so no file of a disk can have such a name and count.
    """
    held: dict[_FileId, int] = {}
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        with suppress(OSError):  # it ended meanwhile
            for name in os.listdir(folder):  # noqa: PTH208 - called for every process, every second
                if _link(f"{folder}/{name}").startswith("/memfd:"):
                    with suppress(OSError):
                        found = os.stat(f"{folder}/{name}")  # noqa: PTH116
                        if found.st_dev == _shared_memory_device():
                            held[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK
    return held


@cache
def _shared_memory_device() -> int:
    """Return the device of all shared memory, as seen on a file without a name."""
    file = os.memfd_create("device")
    try:
        return os.fstat(file).st_dev
    finally:
        os.close(file)


def _mapped_bytes(pid: int, files: Container[_FileId]) -> int:
    """Return how much a process has mapped of some files, as its share of what others have too."""
    try:
        lines = Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines()
    except OSError:
        return 0  # it ended meanwhile
    total, is_theirs = 0, False
    for line in lines:
        if begun := _MAPPING.match(line):
            device = os.makedev(int(begun[1], 16), int(begun[2], 16))
            is_theirs = (device, int(begun[3])) in files
        elif is_theirs and line.startswith("Pss:"):
            total += int(line.split()[1]) * 1024
        elif is_theirs and line.startswith("Anonymous:"):
            total -= int(line.split()[1]) * 1024  # copies of the process itself
    return max(total, 0)


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - called for every process, every second
    except OSError:
        return ""


def _used_bytes(path: str) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize
