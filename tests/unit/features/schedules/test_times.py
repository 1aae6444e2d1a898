"""Times of cron expressions: in local time, later and later, also when the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import machine_zone
from app.errors import Conflict
from app.features.schedules.model import list_times
from tests.support.variants import quick

ZONES = ("Europe/Berlin", "America/New_York", "UTC", "Australia/Lord_Howe", "Asia/Kathmandu")


def local(expression: str, zone: str, after: str, count: int = 3) -> list[str]:
    """List the next times as a clock on the wall of the zone shows them, with the offset."""
    begin = datetime.fromisoformat(after).timestamp()
    found = islice(list_times(expression, zone, begin), count)
    return [f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%m-%d %H:%M %z}" for at in found]


CHANGES = {
    "a fixed time that is skipped runs after the gap, Berlin": (
        "30 2 * * *",
        "Europe/Berlin",
        "2026-03-28T12:00+01:00",
        ["03-29 03:00 +0200", "03-30 02:30 +0200", "03-31 02:30 +0200"],
    ),
    "a fixed time that comes twice runs once, Berlin": (
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24T12:00+02:00",
        ["10-25 02:30 +0200", "10-26 02:30 +0100", "10-27 02:30 +0100"],
    ),
    "a fixed time does not come back in the second of two hours": (
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-25T02:10+01:00",
        ["10-26 02:30 +0100", "10-27 02:30 +0100", "10-28 02:30 +0100"],
    ),
    "every hour is every hour that passes, Berlin": (
        "0 * * * *",
        "Europe/Berlin",
        "2026-10-25T01:30+02:00",
        ["10-25 02:00 +0200", "10-25 02:00 +0100", "10-25 03:00 +0100"],
    ),
    "the skipped hour is not run, New York": (
        "*/30 * * * *",
        "America/New_York",
        "2026-03-08T01:15-05:00",
        ["03-08 01:30 -0500", "03-08 03:00 -0400", "03-08 03:30 -0400"],
    ),
    "a fixed time that is skipped runs after the gap, New York": (
        "15 2 * * *",
        "America/New_York",
        "2026-03-07T12:00-05:00",
        ["03-08 03:00 -0400", "03-09 02:15 -0400", "03-10 02:15 -0400"],
    ),
    "a fixed time that comes twice runs once, New York": (
        "30 1 * * *",
        "America/New_York",
        "2026-10-31T12:00-04:00",
        ["11-01 01:30 -0400", "11-02 01:30 -0500", "11-03 01:30 -0500"],
    ),
    "weekdays at nine stay at nine over a change": (
        "0 9 * * 1-5",
        "Europe/Berlin",
        "2026-03-27T12:00+01:00",
        ["03-30 09:00 +0200", "03-31 09:00 +0200", "04-01 09:00 +0200"],
    ),
}


@pytest.mark.parametrize(("expression", "zone", "after", "times"), quick(8, CHANGES))
def test_times_around_a_change_of_the_clocks(
    expression: str, zone: str, after: str, times: list[str]
) -> None:
    assert local(expression, zone, after) == times


@given(
    minute=st.sampled_from(["0", "30", "*/5", "7,37", "*"]),
    hour=st.sampled_from(["*", "2", "1-3", "9", "*/6"]),
    day=st.sampled_from(["*", "1", "25-31"]),
    weekday=st.sampled_from(["*", "1-5", "0", "SUN"]),
    zone=st.sampled_from(ZONES),
    after=st.floats(min_value=1_767_000_000, max_value=1_830_000_000),
)
def test_times_increase_and_follow_the_expression_in_local_time(
    minute: str, hour: str, day: str, weekday: str, zone: str, after: float
) -> None:
    expression = f"{minute} {hour} {day} * {weekday}"

    found = [after, *islice(list_times(expression, zone, after), 12)]

    assert all(later > earlier for earlier, later in pairwise(found))
    assert len(found) == 13
    for at in found[1:]:
        moment = datetime.fromtimestamp(at, ZoneInfo(zone))
        assert moment.second == 0
        # A fixed time that the clocks skip runs at the end of the gap.
        before_gap = datetime.fromtimestamp(at - 3600, ZoneInfo(zone))
        is_moved = before_gap.utcoffset() != moment.utcoffset()
        assert is_moved or _fits(moment.minute, minute, 60)
        assert is_moved or _fits(moment.hour, hour, 24)
        assert day == "*" or weekday == "*" or is_moved or _fits_day(moment, day, weekday)


def test_the_next_time_does_not_depend_on_where_one_begins_to_count() -> None:
    begin = datetime(2026, 10, 20, tzinfo=UTC).timestamp()
    times = list(islice(list_times("30 2 * * *", "Europe/Berlin", begin), 10))

    again = [next(list_times("30 2 * * *", "Europe/Berlin", at)) for at in times[:-1]]

    assert again == times[1:]


@pytest.mark.parametrize(
    ("expression", "zone", "words"),
    [
        ("at nine", "UTC", "is not a cron expression: minute, hour"),
        ("0 0 9 * * 1", "UTC", "is not a cron expression"),
        ("61 9 * * *", "UTC", "check the minute"),
        ("0 25 * * *", "UTC", "check the hour"),
        ("0 9 * * 8", "UTC", "check the day-of-week"),
        ("0 9 31 2 *", "UTC", "check the day-of-month"),
        ("0 9 * * *", "Europe/Atlantis", "there is no time zone 'Europe/Atlantis'"),
        ("0 9 * * *", "../../etc/passwd", "there is no time zone"),
        ("0 9 * * *", "", "there is no time zone"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(expression: str, zone: str, words: str) -> None:
    with pytest.raises(Conflict, match=words):
        next(list_times(expression, zone, 0.0))


def test_the_zone_of_the_machine_is_that_of_its_environment() -> None:
    assert machine_zone({"TZ": "America/New_York"}) == "America/New_York"
    assert machine_zone({"TZ": ":Asia/Tokyo"}) == "Asia/Tokyo"
    assert ZoneInfo(machine_zone({"TZ": "Nowhere/Land"}))


def _fits(value: int, field: str, size: int) -> bool:
    """Tell whether a value fits a simple field, without the library under test."""
    if field.startswith("*/"):
        return value % int(field[2:]) == 0
    if field == "*":
        return value in range(size)
    if "-" in field:
        low, high = field.split("-")
        return int(low) <= value <= int(high)
    return value in {int(each) for each in field.split(",")}


def _fits_day(moment: datetime, day: str, weekday: str) -> bool:
    """Tell whether a day is one of the month's or one of the week's."""
    days = {"1-5": range(1, 6), "0": range(7, 8), "SUN": range(7, 8)}[weekday]
    return moment.isoweekday() in days or _fits(moment.day, day, 32)
