"""Port for spending: what each day has cost, by person, place and agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Share = Literal["person", "place", "agent", "day"]
"""Whom a cost counts for; `day` is all of them together."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What one of them has spent on a day."""

    share: Share
    name: str
    usd: float


class SpendingStore(Protocol):
    """What was spent; the costs themselves are recorded with those of their session."""

    async def of_turn(self, turn: int, day: str) -> Mapping[Share, float]:
        """Tell what those whom a turn counts for have spent on a day."""
        ...

    async def list(self, day: str) -> Sequence[Spending]:
        """List what was spent on a day, the most first."""
        ...
