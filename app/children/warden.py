"""Watches agents' resource use and stops an agent that exceeds its limits.

Processes, memory and disk of each session are measured about once a second, and less often where
that takes long. When the disk of DATA_DIR is nearly full, the agent that writes most is stopped.
What the bridge itself runs in an agent's isolation is watched in the same way.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.children.disk import DiskSpace
from app.children.limits import MEBIBYTE, ResourceLimits
from app.children.proc_table import read_trees
from app.children.usage import Usage, measure_folders, measure_tree
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
