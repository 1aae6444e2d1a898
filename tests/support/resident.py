"""Measures the memory that a process and its descendants have at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.02
"""Git needs longer to fill hundreds of megabytes."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Peak:
    """The most memory that was seen."""

    size: int = 0
    """In bytes."""
    parts: tuple[tuple[str, int], ...] = ()
    """The processes that had it, with the bytes of each."""

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {size // 2**20}" for name, size in self.parts)
        return f"{self.size // 2**20} MiB: {shown}"


@contextmanager
def watched_memory(pid: int) -> Iterator[Peak]:
    """Look at a process and its descendants until the block ends.

    Pages that several processes share count for each, so the peak is never too small for that.
    """
    peak, over = Peak(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            parts = tuple(_family(pid))
            size = sum(each for _, each in parts)
            if size > peak.size:
                peak.size, peak.parts = size, parts

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield peak
    finally:
        over.set()
        watch.join()


def _family(root: int) -> Iterator[tuple[str, int]]:
    """List the names and resident bytes of a process and all its descendants."""
    processes: dict[int, tuple[str, int]] = {}
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            head, _, tail = (folder / "stat").read_text().rpartition(") ")
        except OSError:
            continue  # it ended meanwhile
        pid, words = int(folder.name), tail.split()
        # proc(5): the parent is the fourth field, the resident pages are the 24th.
        parents[pid] = int(words[1])
        processes[pid] = head.partition("(")[2], int(words[21]) * _PAGE
    family = [root]
    for parent in family:
        family += [pid for pid, above in parents.items() if above == parent]
    for pid in family:
        # A child that has not become another program yet is vforked: its memory is its parent's.
        if pid in processes and (pid == root or processes[pid][0] != processes[root][0]):
            yield processes[pid]
