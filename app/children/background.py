"""Ends what the commands of a child left running, and keeps the child's own processes.

A process is the child's own if it is in the child's process session, began before the child's work,
and is a child of its program or of another of its own processes. A command comes later, and what it
leaves is an orphan or in another session: none of the three can be undone from inside.
"""

from __future__ import annotations

import signal
import time
from typing import Final

from app.children.leftovers import Sweep
from app.children.proc_table import Entry, ProcTable, read_tree, signal_exactly
from app.children.process import Child

_SECONDS: Final = 2.0
"""A killed process is gone in milliseconds; what takes longer breeds faster than it is killed."""
_PAUSE_SECONDS: Final = 0.002
"""Between two looks: about what the kernel needs to end a process."""
_LOOKS: Final = 2
"""So many looks in a row must find nothing: one may miss a process while others end."""


def end_background(child: Child, *, before: int, seconds: float = _SECONDS) -> Sweep:
    """Kill all descendants of a child but its own processes; blocking, so call it in a thread.

    `before` is when its work began, in clock ticks since boot: what is younger is not its own.
    """
    killed: dict[int, str] = {}
    deadline = time.monotonic() + seconds
    clean = 0
    while True:
        tree = read_tree(child.pid)
        own = _own(tree, child, before)
        others = [entry for pid, entry in tree.items() if pid not in own and entry.alive]
        for entry in others:
            if signal_exactly(entry, signal.SIGKILL):
                killed[entry.pid] = entry.name
        clean = 0 if others else clean + 1
        if clean == _LOOKS or time.monotonic() > deadline:
            return Sweep(
                killed=tuple(f"{name} ({pid})" for pid, name in sorted(killed.items())),
                remaining=tuple(sorted(entry.pid for entry in others)),
            )
        if others:
            time.sleep(_PAUSE_SECONDS)


def _own(tree: ProcTable, child: Child, before: int) -> set[int]:
    """Find the processes around the program, the program, and those that it keeps."""
    children: dict[int, list[Entry]] = {}
    for entry in tree.values():
        children.setdefault(entry.parent, []).append(entry)
    own = {child.pid}
    program = tree.get(child.pid)
    for _ in range(child.layers):
        # Orphans become children of the innermost one; the program is older than any of them.
        below = [] if program is None else children.get(program.pid, [])
        program = min(below, key=lambda entry: (entry.ticks, entry.pid), default=None)
        own |= set() if program is None else {program.pid}
    if program is None:
        return own
    waiting = [program.pid]
    while waiting:
        kept = [
            entry.pid
            for entry in children.get(waiting.pop(), [])
            if entry.session == program.session and entry.ticks <= before
        ]
        own.update(kept)
        waiting += kept
    return own
