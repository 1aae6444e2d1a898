"""Calculates from measured costs how many machines a company needs; pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

PEOPLE = (10, 50, 200, 1_000, 3_000, 10_000)
MESSAGES_PER_DAY = 6
"""Requests to agents per person and working day."""
WORKING_SECONDS = 8 * 3600
PEAK = 4
"""The busiest minutes against the average of a working day."""
TURN_SECONDS = 180
"""How long an agent works on one request."""
WORKER_CORES, WORKER_GIB = 8, 32
"""A worker as it is usually bought."""
AGENT_CORES, AGENT_GIB = 0.25, 0.6
"""What one working agent takes: measured after `session/new` are 0.18 GiB (Codex), 0.26 (Claude),
0.33 (Gemini) and 0.49 (opencode); what it builds and tests comes on top. The cores are assumed."""
USED_SHARE = 0.6
"""How far a machine is filled."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor seconds per message, and bytes that stay in the database."""

    bridge: float
    """On SQLite, everything in one process."""
    front: float
    worker: float
    database: float
    stored_bytes: float


@dataclass(frozen=True, slots=True)
class Size:
    """What so many people need."""

    people: int
    per_second: float
    """Messages in the busiest minutes."""
    turns: int
    """Agents that work at once then."""
    workers: int
    bridge_cores: float
    """For the bridge alone, over all machines."""
    database_cores: float
    gib_per_year: float
    advice: str


def size(people: int, costs: Costs) -> Size:
    """Calculate what so many people need."""
    per_day = people * MESSAGES_PER_DAY
    per_second = per_day / WORKING_SECONDS * PEAK
    turns = ceil(per_second * TURN_SECONDS)
    slots = int(min(WORKER_CORES / AGENT_CORES, WORKER_GIB / AGENT_GIB) * USED_SHARE)
    workers = ceil(turns / slots)
    return Size(
        people,
        per_second,
        turns,
        workers,
        per_second * (costs.bridge if workers == 1 else costs.front + costs.worker),
        0.0 if workers == 1 else per_second * costs.database,
        per_day * 250 * costs.stored_bytes / 2**30,
        _advice(workers),
    )


def _advice(workers: int) -> str:
    if workers == 1:
        return "one machine, SQLite"
    return f"PostgreSQL, two fronts, {workers} workers"
