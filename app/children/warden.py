"""Watches agents' resource use and stops an agent that exceeds its limits.

Processes, memory and disk of each session are measured about once a second, and less often where
that takes long. When the disk of DATA_DIR is nearly full, the agent that writes most is stopped.
What the bridge itself runs in an agent's isolation is watched in the same way.

Memory is what belongs to the processes alone: anonymous and shared memory, swap, and files in file
systems that live in memory. What can be read again from a disk does not count.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Final

from app.children.limits import MEBIBYTE, DiskSpace, ResourceLimits
from app.children.proc_table import ProcTable, read_trees
from app.descent import walk
from app.errors import AgentError, AgentStopped
from app.tasks import Tasks

_TREE_SECONDS: Final = 1.0
"""Between two checks of processes and memory."""
_FOLDER_SECONDS: Final = 10.0
"""Between two checks of folders, which may hold many thousand files."""
_COST: Final = 50
"""A check takes at most this part of one core's time."""
_FASTEST_WRITER: Final = 4 * 1024**3
"""Bytes a second: no disk writes faster, so none fills up long before the next check."""
_SHORTEST_SECONDS: Final = 0.05
_LONGEST_SECONDS: Final = 5.0
"""Between two checks of free disk space."""
_LOOKS_KEPT: Final = 6
"""One minute of folder checks: current writes count, not those of an hour ago."""
_WRITES_BYTES: Final = 4 * MEBIBYTE
"""Less is no reason to stop an agent: its own history grows too."""
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


@dataclass(slots=True, eq=False)
class Ward:
    """One agent that is watched, or one command in its isolation."""

    agent: str
    """What people call it."""
    pid: int
    """Its first process; all others descend from it."""
    limits: ResourceLimits
    folders: tuple[Path, ...]
    """The folders it can write to."""
    stop: Callable[[AgentError], None]
    """Stops it at once, for the reason given."""
    sizes: deque[int] = field(default_factory=lambda: deque(maxlen=_LOOKS_KEPT))
    """The sizes of its folders at the last checks."""
    next_look: float = 0.0
    """When its folders are measured again."""

    @property
    def growth(self) -> int:
        """How much its folders grew lately."""
        return self.sizes[-1] - self.sizes[0] if self.sizes else 0

    async def measure_folders(self) -> None:
        """Measure its folders."""
        begun = time.monotonic()
        self.sizes.append(await asyncio.to_thread(measure_folders, self.folders))
        now = time.monotonic()
        self.next_look = now + max(_FOLDER_SECONDS, (now - begun) * _COST)


class Warden:
    """Watches all agents of a bridge."""

    def __init__(self, disk: DiskSpace) -> None:
        self._disk = disk
        self._wards: list[Ward] = []
        self._came = asyncio.Event()
        self._tasks = Tasks("limits")

    def start(self) -> None:
        """Begin to watch: the disk at once, agents as they come."""
        self._tasks.start(self._watch_disk(), name="disk")
        self._tasks.start(self._watch_trees(), name="processes and memory")
        self._tasks.start(self._watch_folders(), name="folders")

    async def close(self) -> None:
        """Stop watching."""
        await self._tasks.close()

    def admit(self, ward: Ward) -> None:
        """Watch an agent from now on."""
        self._wards.append(ward)
        self._came.set()

    def dismiss(self, ward: Ward) -> None:
        """Stop watching an agent."""
        if ward in self._wards:
            self._wards.remove(ward)
        if not self._wards:
            self._came.clear()

    @contextmanager
    def watching(self, ward: Ward) -> Iterator[None]:
        """Watch a command for as long as the block runs."""
        # Most commands end long before it is worth while to measure their folders.
        ward.next_look = time.monotonic() + _FOLDER_SECONDS
        self.admit(ward)
        try:
            yield
        finally:
            self.dismiss(ward)

    async def _watch_trees(self) -> None:
        while await self._came.wait():
            begun = time.monotonic()
            wards = list(self._wards)
            for ward, usage in zip(wards, await asyncio.to_thread(_measure, wards), strict=True):
                self._judge_tree(ward, usage)
            await asyncio.sleep(max(_TREE_SECONDS, (time.monotonic() - begun) * _COST))

    async def _watch_folders(self) -> None:
        while await self._came.wait():
            for ward in list(self._wards):
                if ward.next_look <= time.monotonic():
                    await ward.measure_folders()
                    self._judge_folders(ward)
            await asyncio.sleep(_TREE_SECONDS)

    async def _watch_disk(self) -> None:
        while True:
            free, watermark = await asyncio.to_thread(self._look_at_disk)
            if free < watermark:
                await self._stop_writer(free)
            margin = (free - watermark) / _FASTEST_WRITER
            await asyncio.sleep(min(max(margin, _SHORTEST_SECONDS), _LONGEST_SECONDS))

    def _look_at_disk(self) -> tuple[int, int]:
        self._disk.keep_reserve()
        return self._disk.free(), self._disk.watermark()

    async def _stop_writer(self, free: int) -> None:
        """Stop the agent that wrote the most lately; others only if they keep writing."""
        for ward in list(self._wards):
            await ward.measure_folders()
        writer = max(self._wards, key=lambda ward: ward.growth, default=None)
        if writer is None or writer.growth < _WRITES_BYTES:
            return
        self._stop(
            writer,
            f"the bridge's disk is nearly full ({free // MEBIBYTE} MiB free), and "
            f"{writer.agent} wrote {writer.growth // MEBIBYTE} MiB within a minute",
            "Free some disk space, then try again.",
        )
        for ward in self._wards:
            ward.sizes.clear()

    def _judge_tree(self, ward: Ward, usage: Usage) -> None:
        limits = ward.limits
        if usage.tasks > limits.processes:
            self._stop(
                ward,
                f"{ward.agent} had {usage.tasks} processes and threads (limit: {limits.processes})",
                "Ask for fewer at once, or raise this agent's limits.processes.",
            )
        elif usage.memory_bytes > limits.memory_bytes:
            self._stop(
                ward,
                f"{ward.agent} used {usage.memory_bytes // MEBIBYTE} MiB of memory "
                f"(limit: {limits.memory_bytes // MEBIBYTE} MiB)",
                "Ask for smaller steps, or raise this agent's limits.memory_mb.",
            )

    def _judge_folders(self, ward: Ward) -> None:
        held, limit = ward.sizes[-1], ward.limits.disk_bytes
        if held > limit:
            self._stop(
                ward,
                f"{ward.agent} has {held // MEBIBYTE} MiB in its workspace and home "
                f"(limit: {limit // MEBIBYTE} MiB)",
                "Delete files, start a new session, or raise this agent's limits.disk_mb.",
            )

    def _stop(self, ward: Ward, problem: str, remedy: str) -> None:
        if ward in self._wards:
            self.dismiss(ward)
            ward.stop(AgentStopped(problem, remedy))


def _measure(wards: Sequence[Ward]) -> list[Usage]:
    trees = read_trees(ward.pid for ward in wards)
    return [
        measure_tree(tree, exact_above=ward.limits.memory_bytes)
        for ward, tree in zip(wards, trees, strict=True)
    ]


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
                total += _used_bytes(f"/proc/{pid}/root{path}", device)
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


def _used_bytes(path: str, device: str) -> int:
    """Return what a file system in memory holds; 0 if its place shows something else by now.

    A sandbox that is being built changes its root: the same path may then lead to the disk.
    """
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        there = os.fstat(place).st_dev
        found = os.statvfs(place)
    except OSError:
        return 0
    finally:
        os.close(place)
    is_same = f"{os.major(there)}:{os.minor(there)}" == device
    return (found.f_blocks - found.f_bfree) * found.f_frsize if is_same else 0
