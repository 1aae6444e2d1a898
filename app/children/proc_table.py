"""Reads /proc: which processes run, their descendants and markers; kills what an earlier run left.

A pid is not a process: nothing is signalled unless its start time is still the one read, or it
carries the marker. Where there is no /proc, the table is empty and callers fall back to process
groups.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from app.children.environment import MARKER

_DEAD: Final = frozenset("ZX")
_MARK: Final = f"{MARKER}=".encode()
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_READ_BYTES: Final = 65536
"""More than nearly every environment, so that one call is enough."""


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process as /proc shows it."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    ticks: int
    """Start in clock ticks since boot: with pid and boot id it identifies a process for good."""
    tasks: int
    """How many threads it has, itself included."""
    resident_pages: int

    @property
    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        return self.state not in _DEAD


ProcTable = dict[int, ProcessEntry]


def new_marker(bridge: str) -> str:
    """Return a marker for one child; the part before the dot is the bridge's."""
    return f"{bridge}.{secrets.token_hex(8)}"


def entry_of(pid: int) -> ProcessEntry | None:
    """Return the process with this pid, or None."""
    text = (_read(f"/proc/{pid}/stat") or b"").decode(errors="replace")
    # The name is in parentheses and may itself contain spaces and parentheses.
    name, _, rest = text.partition("(")[2].rpartition(")")
    if not rest:
        return None
    # proc(5): `rest` begins with field 3, num_threads is 20, starttime 22, rss 24.
    state, parent, group, session, *others = rest.split(maxsplit=22)
    tasks, ticks, pages = (int(others[field - 7]) for field in (20, 22, 24))
    return ProcessEntry(
        pid, name, state, int(parent), int(group), int(session), ticks, tasks, pages
    )


def read_proc_table() -> ProcTable:
    """Return every visible process; blocks for a few milliseconds."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    except OSError:
        return {}
    return {pid: entry for pid in numbers if (entry := entry_of(pid)) is not None}


def read_tree(root: int) -> ProcTable:
    """Return a process and its descendants, and read nothing of any other process.

    While others end, the kernel may leave one out: look again before relying on its absence.
    """
    (tree,) = read_trees([root])
    return tree


def read_trees(roots: Iterable[int]) -> list[ProcTable]:
    """Return the tree of each process; a kernel that lists no children is asked for all once."""
    if _lists_children():
        return [_walk_children(root) for root in roots]
    proc_table = read_proc_table()
    families = (with_descendants(proc_table, [root]) for root in roots)
    return [
        {pid: entry for pid, entry in proc_table.items() if pid in family} for family in families
    ]


def ticks_now() -> int:
    """Return the time as /proc tells the start of a process: in clock ticks since boot."""
    if not sys.platform.startswith("linux"):
        return 0  # there is no process table either
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)


def started(entry: ProcessEntry | None) -> str:
    """Return boot id and start time as one opaque word, empty if unknown."""
    return f"{_boot()}:{entry.ticks}" if entry is not None else ""


def marker_of(pid: int) -> str | None:
    """Return a process's marker, None if none can be read, empty if in doubt.

    In the middle of an exec an environment reads as empty for some microseconds.
    """
    environment = _read(f"/proc/{pid}/environ")
    if environment == b"":
        return ""
    if environment is None or _MARK not in environment:
        return None
    for variable in environment.split(b"\0"):
        if variable.startswith(_MARK):
            return variable[len(_MARK) :].decode(errors="replace")
    return None


def with_descendants(proc_table: ProcTable, found: Iterable[int]) -> set[int]:
    """Return these pids and all their descendants, never the bridge or its parents.

    A child that dropped its environment is still found through its parent.
    """
    children: dict[int, list[int]] = {}
    for entry in proc_table.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    family: set[int] = set()
    waiting = list(found)
    while waiting:
        pid = waiting.pop()
        if pid not in family:
            family.add(pid)
            waiting.extend(children.get(pid, ()))
    return family - _own_line(proc_table)


def signal_exactly(entry: ProcessEntry, number: signal.Signals) -> bool:
    """Signal exactly this process, not one that reuses its pid; return whether it was there."""
    try:
        handle = os.pidfd_open(entry.pid)
    except ProcessLookupError:
        return False
    except OSError:
        return _signal_checked(entry, number)  # a kernel or seccomp filter without pidfd
    try:
        if _is_still(entry):
            signal.pidfd_send_signal(handle, number)
            return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(handle)
    return False


def reap_orphans(
    proc_table: ProcTable, *, killed: Collection[int], groups: Collection[int]
) -> None:
    """Collect zombies that became the bridge's because it is process 1 of a container.

    Never a group leader: that is a child, and asyncio collects children itself.
    """
    for entry in proc_table.values():
        is_ours = entry.pid in killed or entry.group in groups or entry.session in groups
        if entry.parent == os.getpid() and not entry.alive and is_ours and entry.pid not in groups:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(entry.pid, os.WNOHANG)


def _walk_children(root: int) -> ProcTable:
    found: ProcTable = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        entry = None if pid in found else entry_of(pid)
        if entry is not None:
            found[pid] = entry
            waiting += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    """List the children of all threads of a process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return []
    listed = [_read(f"/proc/{pid}/task/{thread}/children") or b"" for thread in threads]
    return [int(number) for each in listed for number in each.split()]


@cache
def _lists_children() -> bool:
    """Tell whether the kernel lists the children of a process; some are built without it."""
    return _read(f"/proc/self/task/{threading.get_native_id()}/children") is not None


def _is_still(entry: ProcessEntry) -> bool:
    now = entry_of(entry.pid)
    return now is not None and now.ticks == entry.ticks


def _signal_checked(entry: ProcessEntry, number: signal.Signals) -> bool:
    if not _is_still(entry):
        return False
    try:
        os.kill(entry.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _own_line(proc_table: Mapping[int, ProcessEntry]) -> set[int]:
    line = {0, 1}
    pid = os.getpid()
    while pid not in line:
        line.add(pid)
        entry = proc_table.get(pid)
        pid = entry.parent if entry is not None else 0
    return line


@cache
def _boot() -> str:
    return (_read("/proc/sys/kernel/random/boot_id") or b"").decode().strip()


def _read(path: str) -> bytes | None:
    """Return a /proc file if it can be read; plain os calls, since a sweep makes hundreds."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = b""
        while part := os.read(file, _READ_BYTES):
            content += part
    except OSError:
        return None
    else:
        return content
    finally:
        os.close(file)


_SWEEP_SECONDS: Final = 2.0
"""A killed process is gone in milliseconds; only one stuck in the kernel takes longer."""
_PAUSE_SECONDS: Final = 0.005
"""Between two checks: about what the kernel needs to end a process."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """What is stored about a child, to recognise it and no other process."""

    group: int
    started: str
    marker: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep did."""

    killed: tuple[str, ...] = ()
    """Each as `name (pid)`, in the order of their numbers."""
    remaining: tuple[int, ...] = ()
    """Those that were still running when the time was up."""


def kill_leftovers(
    identities: Collection[ProcessIdentity],
    *,
    bridge: str = "",
    seconds: float = _SWEEP_SECONDS,
) -> Sweep:
    """Kill everything that belongs to these identities; blocking, so call it in a thread.

    With `bridge`, also everything that carries that bridge's marker, stored or not: a crash
    between start and store leaves no process behind. The caller must hold the DATA_DIR lock.
    """
    killed: dict[int, str] = {}
    groups = {identity.group for identity in identities}
    deadline = time.monotonic() + seconds
    looks_in_doubt = 0
    while True:
        proc_table = read_proc_table()
        reap_orphans(proc_table, killed=killed, groups=groups)
        markers = _markers(proc_table, oldest=0 if bridge else _oldest(identities))
        alive = [proc_table[pid] for pid in _family(proc_table, markers, identities, bridge)]
        alive = [entry for entry in alive if entry.alive]
        for entry in alive:
            if signal_exactly(entry, signal.SIGKILL):
                killed[entry.pid] = entry.name
        looks_in_doubt += "" in markers.values()
        is_sure = "" not in markers.values() or looks_in_doubt > 1
        if (not alive and is_sure) or time.monotonic() > deadline:
            return Sweep(
                killed=tuple(f"{name} ({pid})" for pid, name in sorted(killed.items())),
                remaining=tuple(sorted(entry.pid for entry in alive)),
            )
        time.sleep(_PAUSE_SECONDS)


def _markers(proc_table: ProcTable, *, oldest: int) -> dict[int, str]:
    """Return the marker of each process; empty where it cannot be read just now."""
    return {
        entry.pid: marker
        for entry in proc_table.values()
        # No process is older than its ancestor, and kernel threads, which never have an
        # environment, are in no session: this avoids most of the reading.
        if entry.alive and entry.ticks >= oldest and entry.session
        if (marker := marker_of(entry.pid)) is not None
    }


def _family(
    proc_table: ProcTable,
    markers: Mapping[int, str],
    identities: Collection[ProcessIdentity],
    bridge: str,
) -> set[int]:
    wanted = {identity.marker for identity in identities if identity.marker}
    found = {
        pid
        for pid, marker in markers.items()
        if marker in wanted or (bridge and marker.startswith(f"{bridge}."))
    }
    for identity in identities:
        found |= _group(proc_table, identity, markers)
    return with_descendants(proc_table, found)


def _group(
    proc_table: ProcTable, identity: ProcessIdentity, markers: Mapping[int, str]
) -> set[int]:
    members = {
        entry.pid for entry in proc_table.values() if identity.group in (entry.group, entry.session)
    }
    leader = proc_table.get(identity.group)
    is_ours = leader is not None and identity.started and started(leader) == identity.started
    if is_ours or any(markers.get(pid) == identity.marker != "" for pid in members):
        return members
    return set()


def _oldest(identities: Iterable[ProcessIdentity]) -> int:
    starts = [identity.started.rpartition(":")[2] for identity in identities]
    return min((int(ticks) if ticks.isdigit() else 0 for ticks in starts), default=0)
