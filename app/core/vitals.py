"""Values that say how the bridge is at this moment: what waits, for how long, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Vital:
    """One measured value."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


ROLES = ("all", "front", "worker")


def measure_members(roles: Sequence[str], *, silent: float, is_leader: bool) -> Sequence[Vital]:
    """Count the bridges that share a database, by their roles."""
    return [
        *(Vital("members", roles.count(role), (("role", role),)) for role in ROLES),
        Vital("member_silent_seconds", silent),
        Vital("desk", float(is_leader)),
    ]


class VitalStore(Protocol):
    """What the store knows of the bridge's work."""

    async def read(self) -> Sequence[Vital]:
        """Measure what waits in the store, and for how long."""
        ...
