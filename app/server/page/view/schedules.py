"""What the page of schedules shows: a line for each, and the form for a new one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.schedules import wording
from app.model.schedules import Schedule


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """One schedule, with its agent's name for people, and the path and title of its place."""

    schedule: Schedule
    agent: str
    path: str
    title: str

    @property
    def status(self) -> str:
        """When it runs next, or why it does not."""
        return wording.state(self.schedule)


@dataclass(frozen=True, slots=True)
class ScheduleForm:
    """The form for a new schedule: what was filled in, and what is wrong with it."""

    given: Mapping[str, str]
    zone: str
    """The bridge's own time zone."""
    problem: str = ""
