"""What a measurement says: rows of ratios with their goals, and how much work goes into each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should reach."""

    bound: Literal["at least", "at most"]
    value: float

    def reached(self, figure: float) -> bool:
        """Tell whether a figure is on the right side."""
        return figure >= self.value if self.bound == "at least" else figure <= self.value

    def closeness(self, figure: float) -> float:
        """Say how far a figure has come: 1 is the goal, more is better."""
        if self.bound == "at least":
            return figure / self.value
        return self.value / max(figure, 1e-9)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    against: str
    figure: float
    unit: str
    goal: Goal | None
    detail: str
    """The figures behind the ratio, for this machine and moment only."""

    @property
    def shown(self) -> str:
        """The figure as people read it."""
        digits = 1 if self.figure >= 10 else 2  # more would be noise
        return f"{self.figure:,.{digits}f}{self.unit}"

    @property
    def wanted(self) -> str:
        """The goal as people read it."""
        return "" if self.goal is None else f"{self.goal.bound} {self.goal.value:g}{self.unit}"

    @property
    def verdict(self) -> str:
        """Whether the goal is reached."""
        if self.goal is None:
            return "for information"
        return "ok" if self.goal.reached(self.figure) else "not yet"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: enough to trust the ratios, or just enough to see that all works."""

    rounds: int
    """How often everything is measured, in turns."""
    deliveries: int
    """Webhooks in one round."""
    single: int
    """Webhooks one after another over one connection."""
    updates: int
    """Updates in one stream."""
    cold: int
    """Cold events."""
    sessions: int
    """Sessions in the store of the restarted bridge."""
    starts: int
    """Starts of each kind."""
    live: int
    """Agents that live at once."""


FULL = Scale(
    rounds=7,
    deliveries=6_000,
    single=600,
    updates=200_000,
    cold=25,
    sessions=10_000,
    starts=7,
    live=40,
)
QUICK = Scale(
    rounds=2,
    deliveries=1_500,
    single=150,
    updates=50_000,
    cold=6,
    sessions=10_000,
    starts=2,
    live=15,
)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Give the median ratio of rounds that were measured side by side."""
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


def milliseconds(seconds: float) -> str:
    """Write a duration."""
    return f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds:.2f} s"
