"""Reads schedules: their values, the command that makes one, when it runs, and its JSON shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from typing import Literal

from cronsim import CronSim, CronSimError
from pydantic import BaseModel, ConfigDict, Field

from app.clock import find_zone
from app.errors import Conflict
from app.model.keys import PlaceKey, SessionKey
from app.model.types import Speaker
from app.server.shapes import NAME, TEXT_CHARACTERS

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


QUOTES = '"`\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033'
"""What people write around the time: phones and Slack turn straight quotes into others."""
FIELDS = 5
"""Of a cron expression; a sixth word is the time zone."""

_CREATE = re.compile(rf"(?is)schedule\s+[{QUOTES}]([^{QUOTES}]*)[{QUOTES}](.*)")
_CHANGE = re.compile(r"schedule\s+(remove|pause|resume|run)\s+#?(\d{1,9})", re.IGNORECASE)
_BEGIN = re.compile(rf"schedule\s+[{QUOTES}]", re.IGNORECASE)

Act = Literal["list", "create", "remove", "pause", "resume", "run", "help"]


@dataclass(frozen=True, slots=True)
class ScheduleCommand:
    """What a person asks of schedules."""

    act: Act
    number: int = 0
    expression: str = ""
    zone: str = ""
    """Empty for the bridge's own."""
    words: str = ""


def read(text: str) -> ScheduleCommand | None:
    """Read a message as a command about schedules; None if it is words for an agent."""
    line = text.strip()
    if line.lower() == "schedule":
        return ScheduleCommand("list")
    if change := _CHANGE.fullmatch(line):
        act: Act = change[1].lower()  # type: ignore[assignment]  # the pattern has only these
        return ScheduleCommand(act, int(change[2]))
    if create := _CREATE.fullmatch(line):
        expression, zone = split(create[1])
        return ScheduleCommand("create", 0, expression, zone, create[2].strip())
    return ScheduleCommand("help") if _BEGIN.match(line) else None


def split(when: str) -> tuple[str, str]:
    """Split what is written between the quotes: an expression, then perhaps a time zone."""
    parts = when.split()
    if len(parts) == FIELDS + 1:
        return " ".join(parts[:FIELDS]), parts[FIELDS]
    return " ".join(parts), ""


def write(expression: str, zone: str, words: str) -> str:
    """Write the command that creates a schedule."""
    return f'schedule "{expression} {zone}" {words}'


def list_times(expression: str, zone: str, after: float) -> Iterator[float]:
    """Yield the times after a moment, strictly increasing.

    Raises:
        Conflict: the expression or the zone makes no sense.
    """
    if len(expression.split()) != FIELDS:
        raise Conflict(
            f"{expression!r} is not a cron expression: minute, hour, day of the month, month "
            "and day of the week"
        )
    begin = datetime.fromtimestamp(after, find_zone(zone))
    try:
        found = CronSim(expression, begin)
    except CronSimError as error:
        field = str(error).removeprefix("Bad ")
        raise Conflict(f"{expression!r} is not a cron expression: check the {field}") from None
    return _increase(found, after)


def _increase(found: CronSim, after: float) -> Iterator[float]:
    """Leave out what is not later: an hour that the clocks repeat has each local time twice."""
    last = after
    for moment in found:
        at = moment.timestamp()
        if at > last:
            yield at
            last = at


CLOSEST_MINUTES = 5
"""The least time between two runs: more often would spend a budget before a person notices."""
LATE_SECONDS = 300.0
"""A run that begins later than this after its time counts as missed and made up for."""
LOOKED_AT = 300
"""Times that show how close two can be: more than two days of any rule that is allowed."""
LOOKED_AHEAD_SECONDS = 400 * 86_400.0
"""How far that look goes: a year, so that a rare rule takes no time."""


def first_times(expression: str, zone: str, after: float, *, count: int = 3) -> tuple[float, ...]:
    """Return the next times of a rule.

    Raises:
        Conflict: it makes no sense, it never happens, or it is too often.
    """
    times: list[float] = []
    for each in islice(list_times(expression, zone, after), LOOKED_AT):
        times.append(each)
        if len(times) > count and each > after + LOOKED_AHEAD_SECONDS:
            break
    if not times:
        raise Conflict(f"{expression!r} never happens")
    closest = min((later - each for each, later in pairwise(times)), default=float("inf"))
    if closest < CLOSEST_MINUTES * 60:
        raise Conflict(
            f"{expression!r} runs more often than every {CLOSEST_MINUTES} minutes, the shortest "
            "time between two runs"
        )
    return tuple(times[:count])


def find_due(schedule: Schedule, now: float) -> Due:
    """Work out the one run that makes up for every time that has passed.

    Raises:
        Conflict: the rule has no further times.
    """
    at, missed = schedule.due_at, 0
    for each in list_times(schedule.expression, schedule.zone, at):
        if each > now:
            return Due(at, missed + (now - at > LATE_SECONDS), each)
        at, missed = each, missed + 1
        if missed > MOST_MISSED:
            break
    return Due(at, missed, find_next(schedule, now))


def find_next(schedule: Schedule, after: float) -> float:
    """Return the next time of a schedule.

    Raises:
        Conflict: there is none.
    """
    found = next(list_times(schedule.expression, schedule.zone, after), None)
    if found is None:
        raise Conflict(f"{schedule.expression!r} never happens again")
    return found


class ScheduleIn(BaseModel):
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
