"""Rows of ratios with their goals, what takes their place when they fail, and the scale of work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
class Gap:
    """What the table shows where a measurement has no figure."""

    what: str
    why: str
    failed: bool
    """Whether its work was not done; else the machine lacks what it needs."""

    @property
    def verdict(self) -> str:
        """Whether a person has to look."""
        return "failed" if self.failed else "left out"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: enough to trust the ratios, or just enough to see that all works."""

    rounds: int
    """How often everything is measured, in turns."""
    deliveries: int
    """Webhooks in one round."""
    warm_up: int
    """Webhooks before the clock starts."""
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
    warm_live: int
    """Sessions that live before the first look: they pay for what is made once."""
    live: int
    """Agents that live on top of those."""
    files: int
    """Files of the cloned repository."""
    characters: int
    """Characters of a long answer on the page."""
    calls: int
    """Tool calls of a long turn on the page."""
    threads: int
    """Threads in a long list."""
    looks: int
    """How often the memory of a bridge is looked at; starts differ by some hundred KiB."""
    rest_seconds: float
    """Until a bridge has done what it does once: imports, the isolation probe."""


FULL = Scale(
    rounds=7,
    deliveries=6_000,
    warm_up=200,
    single=600,
    updates=200_000,
    cold=25,
    sessions=10_000,
    starts=7,
    warm_live=10,
    live=40,
    files=50_000,
    characters=200_000,
    calls=1_000,
    threads=500,
    looks=3,
    rest_seconds=2.0,
)
QUICK = replace(
    FULL, rounds=2, deliveries=1_500, single=150, updates=50_000, cold=6, starts=2, live=15
)
TINY = Scale(
    rounds=1,
    deliveries=64,
    warm_up=8,
    single=8,
    updates=2_000,
    cold=1,
    sessions=20,
    starts=1,
    warm_live=1,
    live=2,
    files=300,
    characters=20_000,
    calls=100,
    threads=50,
    looks=1,
    rest_seconds=0.0,
)
"""What `make test-all` runs: every row once, for its checks alone."""


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Give the median ratio of rounds that were measured side by side."""
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


def milliseconds(seconds: float) -> str:
    """Write a duration."""
    return f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds:.2f} s"
