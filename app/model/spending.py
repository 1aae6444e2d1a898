"""Holds what was spent, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Share = Literal["person", "place", "agent", "day"]
"""Whom a cost counts for; `day` is all of them together."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What one of them has spent on a day."""

    share: Share
    name: str
    usd: float
