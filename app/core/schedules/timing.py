"""Works out when schedules run: the next times, what was missed, and what is too often; pure."""

from __future__ import annotations

from itertools import islice, pairwise

from app.core.schedules.types import Timetable
from app.errors import Conflict
from app.model.schedules import Due, Schedule

CLOSEST_MINUTES = 5
"""The least time between two runs: more often would spend a budget before a person notices."""
LATE_SECONDS = 300.0
"""A run that begins later than this after its time counts as missed and made up for."""
LOOKED_AT = 300
"""Times that show how close two can be: more than two days of any rule that is allowed."""
LOOKED_AHEAD_SECONDS = 400 * 86_400.0
"""How far that look goes: a year, so that a rare rule takes no time."""
MOST_MISSED = 1_000
"""Missed times that are counted: more would take seconds and tell people no more."""


def first_times(
    timetable: Timetable, expression: str, zone: str, after: float, *, count: int = 3
) -> tuple[float, ...]:
    """Return the next times of a rule.

    Raises:
        Conflict: it makes no sense, it never happens, or it is too often.
    """
    times: list[float] = []
    for each in islice(timetable.times(expression, zone, after), LOOKED_AT):
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


def find_due(timetable: Timetable, schedule: Schedule, now: float) -> Due:
    """Work out the one run that makes up for every time that has passed.

    Raises:
        Conflict: the rule has no further times.
    """
    at, missed = schedule.due_at, 0
    for each in timetable.times(schedule.expression, schedule.zone, at):
        if each > now:
            return Due(at, missed + (now - at > LATE_SECONDS), each)
        at, missed = each, missed + 1
        if missed > MOST_MISSED:
            break
    return Due(at, missed, find_next(timetable, schedule, now))


def find_next(timetable: Timetable, schedule: Schedule, after: float) -> float:
    """Return the next time of a schedule.

    Raises:
        Conflict: there is none.
    """
    found = next(timetable.times(schedule.expression, schedule.zone, after), None)
    if found is None:
        raise Conflict(f"{schedule.expression!r} never happens again")
    return found
