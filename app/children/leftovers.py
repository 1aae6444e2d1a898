"""Kills processes that an earlier run of the bridge left, by the identities it stored.

A group is killed only when its leader is still the process that was stored, or when one of its
members carries the marker; a number alone proves nothing.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.children.proc_table import (
    ProcTable,
    marker_of,
    read_proc_table,
    reap_orphans,
    signal_exactly,
    started,
    with_descendants,
)

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
