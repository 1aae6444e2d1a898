"""Defines the JSON shapes of schedules."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from app.core.schedules import wording
from app.model.schedules import Schedule, ScheduleState
from app.server.shapes import NAME, TEXT_CHARACTERS


class NewSchedule(BaseModel):
    """What an agent is to be asked again and again, in a new thread or in one that exists."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    agent: str
    expression: str = Field(min_length=1, max_length=200)
    """When, as a cron expression: minute, hour, day of the month, month, day of the week."""
    words: str = Field(min_length=1, max_length=TEXT_CHARACTERS)
    zone: str | None = Field(default=None, max_length=100)
    """The time zone, such as Europe/Berlin; by default the bridge's."""
    thread: str | None = Field(default=None, pattern=NAME)


class ScheduleOut(BaseModel):
    """A schedule."""

    id: int
    agent: str
    key: str
    service: str
    place: str
    expression: str
    zone: str
    words: str
    creator: str
    state: ScheduleState
    next: float | None
    """When it runs next; null while it is paused."""
    status: str
    """The same in words, or why it is paused."""
    failures: int
    created_at: float

    @classmethod
    def of(cls, schedule: Schedule, agent: str) -> ScheduleOut:
        """Show a schedule under the name of its agent."""
        return cls(
            id=schedule.id,
            agent=agent,
            key=str(schedule.key),
            service=schedule.place.service,
            place=schedule.place.name,
            expression=schedule.expression,
            zone=schedule.zone,
            words=schedule.words,
            creator=schedule.creator.name,
            state=schedule.state,
            next=schedule.due_at if schedule.state == "active" else None,
            status=wording.state(schedule),
            failures=schedule.failures,
            created_at=schedule.created_at,
        )
