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


class VitalStore(Protocol):
    """What the store knows of the bridge's work."""

    async def read(self) -> Sequence[Vital]:
        """Measure what waits in the store, and for how long."""
        ...
