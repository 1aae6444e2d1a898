"""Processes of an earlier life of the bridge: known by what was stored, killed at the next start.

A group is killed only when its leader is still the process that was stored, or when one of its
members carries the marker; a number alone proves nothing.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.children.census import (
    Census,
    marker_of,
    reap_orphans,
    signal_exactly,
    started,
    take_census,
    with_descendants,
)

_SWEEP_SECONDS: Final = 2.0
"""A killed process is gone in milliseconds; only one stuck in the kernel takes longer."""
_PAUSE_SECONDS: Final = 0.005
"""Between two looks: about what the kernel needs to tear a process down."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """What is stored about a child so that it is known again, and nobody else is taken for it."""

    group: int
    started: str
    marker: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep did."""

    killed: tuple[str, ...] = ()
    """Each as `name (pid)`, in the order of their numbers."""
    remaining: tuple[int, ...] = ()
    """Those that were still there when the time was over."""


def kill_leftovers(
    identities: Collection[ProcessIdentity],
    *,
    bridge: str = "",
    seconds: float = _SWEEP_SECONDS,
) -> Sweep:
    """Kill everything that belongs to these identities; blocking, so call it in a thread.

    With `bridge`, also everything that carries a marker of that bridge, stored or not: a crash
    between start and store leaves nobody behind. Only for whoever holds the lock on DATA_DIR.
    """
    killed: dict[int, str] = {}
    groups = {identity.group for identity in identities}
    deadline = time.monotonic() + seconds
    looks_in_doubt = 0
    while True:
        census = take_census()
        reap_orphans(census, killed=killed, groups=groups)
        markers = _markers(census, oldest=0 if bridge else _oldest(identities))
        alive = [census[pid] for pid in _family(census, markers, identities, bridge)]
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


def _markers(census: Census, *, oldest: int) -> dict[int, str]:
    """Return who carries which marker; empty for those of whom it cannot be said just now."""
    return {
        entry.pid: marker
        for entry in census.values()
        # Nobody is older than its own ancestor, and threads of the kernel, which never have an
        # environment, are in no session: this spares most of the reading.
        if entry.alive and entry.ticks >= oldest and entry.session
        if (marker := marker_of(entry.pid)) is not None
    }


def _family(
    census: Census,
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
        found |= _group(census, identity, markers)
    return with_descendants(census, found)


def _group(census: Census, identity: ProcessIdentity, markers: Mapping[int, str]) -> set[int]:
    members = {
        entry.pid for entry in census.values() if identity.group in (entry.group, entry.session)
    }
    leader = census.get(identity.group)
    is_ours = leader is not None and identity.started and started(leader) == identity.started
    if is_ours or any(markers.get(pid) == identity.marker != "" for pid in members):
        return members
    return set()


def _oldest(identities: Iterable[ProcessIdentity]) -> int:
    starts = [identity.started.rpartition(":")[2] for identity in identities]
    return min((int(ticks) if ticks.isdigit() else 0 for ticks in starts), default=0)
