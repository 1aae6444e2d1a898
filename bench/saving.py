"""Saving the state of a clone, as at the end of each turn: what it takes of the processor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median

from bench.clone import Opened, fill, opened
from bench.figures import Goal, Row, Scale, milliseconds
from bench.proof import prove, prove_equal

FILES = 1_000
TURNS = 5
"""Turns per round, each with a change and without."""


def measure(scale: Scale, folder: Path) -> Iterator[Row]:
    """Measure a turn that changed a file, and one that changed nothing."""
    remote = folder / "remote.git"
    fill(remote, FILES)
    changed, same = asyncio.run(_measure(remote, folder / "bridge", TURNS * scale.rounds))
    for what, spent, goal in (
        ("saving the state of a clone after a small change", changed, None),
        ("saving the state of a clone that has not changed", same, Goal("at most", 20.0)),
    ):
        yield Row(
            what,
            "one core",
            median(cpu for cpu, _ in spent) * 1000,
            " ms",
            goal,
            f"{FILES:,} files; least {milliseconds(min(cpu for cpu, _ in spent))}, "
            f"takes {milliseconds(median(took for _, took in spent))}",
        )


Spent = list[tuple[float, float]]
"""Processor time and time on the clock."""


async def _measure(remote: Path, folder: Path, turns: int) -> tuple[Spent, Spent]:
    changed: Spent = []
    same: Spent = []
    # What runs in bubblewrap is not counted as this process's children.
    async with opened(remote, folder, 0, isolated=False) as found:
        known = await _save(found, "", [])
        for number in range(turns):
            work = found.clone.folder
            (work / f"new{number}.txt").write_text(f"new {number}\n")
            (work / "folder1/file1.txt").write_text(f"changed {number}\n")
            name = await _save(found, known, changed)
            prove(name != known, "a changed state has no name of its own")
            prove_equal(await _save(found, name, same), name, "name of the same state")
            known = name
    return changed, same


async def _save(found: Opened, known: str, spent: Spent) -> str:
    before, began = _cpu_seconds(), time.monotonic()
    name = await found.checkouts.save(found.clone, known=known, bases=())
    spent.append((_cpu_seconds() - before, time.monotonic() - began))
    return name


def _cpu_seconds() -> float:
    """Return what this process and its children, those that have ended, have spent."""
    spent = (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)
