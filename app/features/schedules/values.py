"""Schedules as values: when they run, what they say, what is due of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.model.keys import PlaceKey, SessionKey
from app.model.types import Speaker

ScheduleState = Literal["active", "paused"]


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A schedule that a person asks for."""

    key: SessionKey
    place: PlaceKey
    expression: str
    zone: str
    words: str
    creator: Speaker
    due_at: float
    origin: str
    """Names the message that asked for it: asked for twice, it is made once."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What an agent is asked again and again."""

    id: int
    key: SessionKey
    """The conversation where it runs."""
    place: PlaceKey
    expression: str
    zone: str
    words: str
    creator: Speaker
    """The person whose rights every run needs."""
    state: ScheduleState
    reason: str
    """The code of why it is paused; empty if it is not."""
    due_at: float
    failures: int = 0
    """How many runs failed in a row."""
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Agreed:
    """A schedule that an agent proposed and a person agreed to."""

    ask: int
    key: SessionKey
    place: PlaceKey
    rule: str
    """Expression and zone."""
    words: str
    creator: Speaker


@dataclass(frozen=True, slots=True)
class Due:
    """What is due of a schedule: one run, however many times have passed."""

    at: float
    """The latest time that has passed."""
    missed: int
    """How many times passed without a run, the latest among them if the run is late."""
    next_at: float


MOST_MISSED = 1_000
"""Missed times that are counted: more would take seconds and tell people no more."""
