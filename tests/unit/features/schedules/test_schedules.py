"""Schedules at a desk: made by a command, run at their times, paused when they fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from app.core.commands import Command, parse
from app.core.hooks import FeatureCommand, Hook, Hooks
from app.errors import AgentRefused, Conflict, PostRejected
from app.features.schedules import model as command
from app.features.schedules.model import (
    MOST_MISSED,
    Schedule,
    ScheduleCommand,
    find_due,
    first_times,
)
from app.features.schedules.service import Schedules
from app.features.schedules.store import ScheduleStore, run_name, to_delivery
from app.model.inbound import Heard
from app.model.keys import PlaceKey, SessionKey
from app.model.types import Speaker
from tests.support.clock import START, ManualClock
from tests.support.desk import Desk, Rules, running_desk
from tests.support.memory import heard

pytestmark = pytest.mark.anyio

DAY = 86_400.0
NEXT = datetime.fromtimestamp(START, UTC).replace(hour=9, minute=0, second=0).timestamp()
"""Nine o'clock after the desk opens, in UTC."""


def to_demo(text: str, place: str = "t1") -> Heard:
    """Say something to the agent of most tests."""
    return replace(heard(text, place), mentions=("demo",))


def schedule(**more: object) -> Schedule:
    """Make a schedule for nine o'clock every day, due on the first day."""
    usual = Schedule(
        id=1,
        key=SessionKey("web", "t1", "demo"),
        place=PlaceKey("web", "t1"),
        expression="0 9 * * *",
        zone="UTC",
        words="look",
        creator=Speaker("ann", "Ann"),
        state="active",
        reason="",
        due_at=NEXT,
    )
    return replace(usual, **more)  # type: ignore[arg-type]  # named fields


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("schedule", ScheduleCommand("list")),
        ("Schedule", ScheduleCommand("list")),
        ("schedule remove 3", ScheduleCommand("remove", 3)),
        ("schedule pause #12", ScheduleCommand("pause", 12)),
        ("schedule resume 3", ScheduleCommand("resume", 3)),
        ("schedule run 3", ScheduleCommand("run", 3)),
        (
            'schedule "0 9 * * 1-5" look around',
            ScheduleCommand("create", 0, "0 9 * * 1-5", "", "look around"),
        ),
        (
            "schedule \u201c0 9 * * 1-5\u201d look",
            ScheduleCommand("create", 0, "0 9 * * 1-5", "", "look"),
        ),
        (
            "schedule \u201e0  9 * * 1-5 Europe/Berlin\u201c look",
            ScheduleCommand("create", 0, "0 9 * * 1-5", "Europe/Berlin", "look"),
        ),
        (
            "schedule \u00ab0 9 * * 1\u00bb one\ntwo",
            ScheduleCommand("create", 0, "0 9 * * 1", "", "one\ntwo"),
        ),
        ("schedule `0 9 * * 1` look", ScheduleCommand("create", 0, "0 9 * * 1", "", "look")),
        ('schedule "every day" look', ScheduleCommand("create", 0, "every day", "", "look")),
        ('schedule "0 9 * * 1', ScheduleCommand("help")),
        ("schedule a meeting with Bob", None),
        ("schedule 0 9 * * 1-5 look", None),
        ("schedule remove", None),
        ("please schedule remove 3", None),
        ("reschedule", None),
    ],
)
def test_the_command_is_read_only_if_it_is_one(text: str, read: ScheduleCommand | None) -> None:
    assert command.read(text) == read


class Reading(Hook):
    """Reads the command."""

    command_names = Schedules.command_names

    @override
    def read_command(self, line: str, agents: object) -> ScheduleCommand | None:
        return command.read(line)


def test_a_command_with_a_mark_and_a_wrong_argument_gets_help() -> None:
    hook = Reading()
    hooks = Hooks(hook)

    assert parse("!schedule tomorrow", hooks=hooks) == Command("help")
    assert parse("!schedule", hooks=hooks) == Command(
        "schedule", own=FeatureCommand("schedule", hook, ScheduleCommand("list"))
    )


@given(
    words=st.text(min_size=1).filter(lambda text: text == text.strip()),
    zone=st.sampled_from(["UTC", "Europe/Berlin"]),
)
def test_a_written_command_is_read_as_it_was_meant(words: str, zone: str) -> None:
    written = command.write("0 9 * * 1-5", zone, words)

    assert command.read(written) == ScheduleCommand("create", 0, "0 9 * * 1-5", zone, words)


@pytest.mark.parametrize(
    "expression", ["* * * * *", "*/4 * * * *", "*/7 * * * *", "0,59 0,23 * * *", "0,59 8,9 1 1 *"]
)
def test_what_runs_more_often_than_every_five_minutes_is_refused(expression: str) -> None:
    with pytest.raises(Conflict, match="more often than every 5 minutes"):
        first_times(expression, "UTC", START)


@pytest.mark.parametrize("expression", ["*/5 * * * *", "0 9 * * *", "0 0 29 2 *", "0 0 * * 5#5"])
def test_what_runs_every_five_minutes_or_less_often_is_taken(expression: str) -> None:
    assert len(first_times(expression, "Europe/Berlin", START)) == 3


@pytest.mark.parametrize(
    ("later", "at", "missed"),
    [
        (0.0, NEXT, 0),
        (60.0, NEXT, 0),
        (3600.0, NEXT, 1),
        (DAY, NEXT + DAY, 1),
        (3 * DAY + 3600, NEXT + 3 * DAY, 4),
        (3 * DAY + 10, NEXT + 3 * DAY, 3),
        (9_999 * DAY, NEXT + (MOST_MISSED + 1) * DAY, MOST_MISSED + 1),
    ],
)
def test_what_was_missed_is_made_up_for_by_one_run(later: float, at: float, missed: int) -> None:
    due = find_due(schedule(), NEXT + later)

    assert (due.at, due.missed) == (at, missed)
    assert NEXT + later < due.next_at <= NEXT + later + DAY


@given(st.floats(min_value=0, max_value=40 * DAY))
def test_the_run_that_is_due_is_the_last_before_now(later: float) -> None:
    now = NEXT + later

    due = find_due(schedule(), now)

    assert due.at <= now < due.next_at
    assert due.next_at - due.at == DAY


@asynccontextmanager
async def desk_at_eight(folder: Path) -> AsyncIterator[tuple[Desk, ManualClock]]:
    """Open a desk at eight o'clock, whose time moves only as a test says."""
    clock = ManualClock()
    rules = Rules(names={"demo": "Demo"}, idle_seconds=100 * DAY)
    async with running_desk(folder, clock=clock, rules=rules) as desk:
        yield desk, clock


def notices(desk: Desk) -> list[str]:
    """List what the place was told by the bridge itself."""
    return [post.content.note for post in desk.posts() if post.content.kind == "notice"]


async def pass_time(desk: Desk, clock: ManualClock, at: float) -> None:
    """Let time pass until a moment; a run that is due then becomes a delivery."""
    await clock.asleep()
    await clock.advance(at - clock.now())


async def ended(desk: Desk, turn: int, state: str) -> None:
    """Wait for the end of a turn that a run began."""
    await desk.until(lambda: desk.stores.turns.turn(turn) is not None)
    await desk.reached(turn, state)


async def test_a_schedule_runs_at_its_times_as_a_message_of_its_creator(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, clock):
        await desk.hear(to_demo('schedule "0 9 * * *" count the stars'))
        await pass_time(desk, clock, NEXT)
        await ended(desk, 1, "done")
        await pass_time(desk, clock, NEXT + DAY)
        await ended(desk, 2, "done")

        asked = desk.turn(1).prompt
        assert "run of schedule 1 (0 9 * * * UTC), made by Ann" in asked
        assert asked.endswith("count the stars")
        made, *runs = notices(desk)
        assert made.startswith("Schedule 1 for Demo: count the stars\n0 9 * * * (UTC), next: ")
        assert "Fri 2027-01-15 09:00 UTC, Sat 2027-01-16 09:00 UTC, Sun 2027-01-17" in made
        assert runs == ["Schedule 1 by Ann (0 9 * * * UTC): count the stars"] * 2
        kinds = [post.content.kind for post in desk.posts() if post.op == "create"]
        assert kinds == ["notice", "notice", "turn", "notice", "turn"]
        [kept] = desk.stores.open(ScheduleStore).all()
        assert kept.due_at == NEXT + 2 * DAY
        known = await desk.stores.deliveries.outcome("web:demo", run_name(1, NEXT))
        assert known == "done"


async def test_what_cannot_be_scheduled_is_refused_with_an_example(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, _):
        for text in (
            'schedule "at nine" look',
            'schedule "* * * * *" look',
            'schedule "0 9 * * *"',
            'schedule "0 9 * * * Europe/Atlantis" look',
            'schedule "0 9 * * *',
        ):
            await desk.hear(to_demo(text))
        await desk.hear(replace(to_demo('schedule "0 9 * * *" look'), mentions=()))
        await desk.until(lambda: len(notices(desk)) == 6)

        said = notices(desk)
        assert desk.stores.open(ScheduleStore).all() == []
        assert all('`schedule "0 9 * * 1-5" Summarise' in each for each in said[:5])
        assert [each.partition(".")[0] for each in said] == [
            "Not scheduled: 'at nine' is not a cron expression: minute, hour, day of the month, "
            "month and day of the week",
            "Not scheduled: '* * * * *' runs more often than every 5 minutes, the shortest time "
            "between two runs",
            "Not scheduled: it does not say what to do",
            "Not scheduled: there is no time zone 'Europe/Atlantis'; one is Europe/Berlin",
            "Write the time as a cron expression in quotes, then what to do",
            "Which agent? Mention it",
        ]


async def test_a_place_lists_pauses_resumes_runs_and_removes_its_schedules(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, clock):
        await desk.hear(to_demo('schedule "0 9 * * *" one'))
        await desk.hear(to_demo('schedule "0 10 * * * Europe/Berlin" two'))
        await desk.hear(to_demo("schedule pause 1"))
        await desk.hear(to_demo("schedule", "t2"))
        await desk.hear(to_demo("schedule remove 1", "t2"))
        await desk.hear(to_demo("schedule"))
        await desk.hear(to_demo("schedule run 2"))
        await ended(desk, 1, "done")
        await pass_time(desk, clock, NEXT + 3600)
        await ended(desk, 2, "done")
        await desk.hear(to_demo("schedule resume 1"))
        await desk.hear(to_demo("schedule remove 2"))

        said = notices(desk)
        assert said[2] == "Schedule 1 is paused. To go on, send `schedule resume 1`."
        assert said[3].startswith("There are no schedules here.")
        assert said[4] == "There is no schedule 1 here. Send `schedule` for a list."
        assert said[5].splitlines() == [
            "1. Demo, 0 9 * * * (UTC), by Ann: one (paused)",
            "2. Demo, 0 10 * * * (Europe/Berlin), by Ann: two (next: Fri 2027-01-15 10:00 CET)",
        ]
        assert said[-2:] == [
            "Schedule 1 is active again, next: Sat 2027-01-16 09:00 UTC.",
            "Schedule 2 was removed.",
        ]
        [left] = desk.stores.open(ScheduleStore).all()
        assert (left.id, left.state, left.due_at) == (1, "active", NEXT + DAY)


async def test_an_agent_has_at_most_ten_schedules_in_a_place(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, _):
        for number in range(11):
            await desk.hear(to_demo(f'schedule "{number} 9 * * *" look'))
        await desk.hear(to_demo('schedule "0 9 * * *" look', "t2"))
        await desk.until(lambda: len(notices(desk)) == 12)

        assert len(desk.stores.open(ScheduleStore).all()) == 11
        assert "Demo has 10 schedules here already" in notices(desk)[10]


@pytest.mark.long
async def test_three_failures_in_a_row_pause_a_schedule_and_resume_forgets_them(
    tmp_path: Path,
) -> None:
    async def fail(_listener: object) -> None:
        raise AgentRefused("demo", -32603, "no")

    async with desk_at_eight(tmp_path) as (desk, clock):
        answer = desk.launcher.script
        await desk.hear(to_demo('schedule "0 9 * * *" look'))
        for day, script in enumerate((fail, fail, answer, fail, fail, fail)):
            desk.launcher.script = script
            await pass_time(desk, clock, NEXT + day * DAY)
            await ended(desk, day + 1, "done" if script is answer else "failed")
        await desk.until(lambda: "paused" in notices(desk)[-1])
        [kept] = desk.stores.open(ScheduleStore).all()
        await desk.hear(to_demo("schedule resume 1"))

        assert (kept.state, kept.reason, kept.failures) == ("paused", "failures", 3)
        assert [each for each in notices(desk) if "failed" in each] == [
            "Schedule 1 is paused because it failed three times in a row. Once the cause is gone, "
            "send `schedule resume 1`."
        ]
        [resumed] = desk.stores.open(ScheduleStore).all()
        assert (resumed.state, resumed.reason, resumed.failures) == ("active", "", 0)


@pytest.mark.long
async def test_the_rights_of_the_creator_are_checked_at_every_run(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, clock):
        await desk.hear(to_demo('schedule "0 9 * * *" look'))
        [presence] = desk.adapters.values()

        async def refuse(_speaker: Speaker, _place: PlaceKey) -> str | None:
            return "you left"

        presence.refusal = refuse  # type: ignore[method-assign,assignment]  # rights are taken away
        for day in range(3):
            await pass_time(desk, clock, NEXT + day * DAY)
            await desk.until(lambda day=day: _failures(desk) == day + 1)  # type: ignore[misc]

        assert desk.launcher.lines == []
        [kept] = desk.stores.open(ScheduleStore).all()
        assert (kept.state, kept.reason) == ("paused", "failures")
        await desk.until(lambda: "paused" in notices(desk)[-1])
        assert "Demo did not act: you left." in notices(desk)


def _failures(desk: Desk) -> int:
    [kept] = desk.stores.open(ScheduleStore).all()
    return kept.failures


async def test_a_run_answers_no_question_and_is_no_command(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, clock):
        await desk.hear(to_demo('schedule "0 9 * * *" stop'))
        await pass_time(desk, clock, NEXT)
        await ended(desk, 1, "done")

        assert desk.turn(1).prompt.endswith("stop")


async def test_a_place_that_cannot_be_reached_pauses_its_schedules(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, clock):
        await desk.hear(to_demo('schedule "0 9 * * *" look'))
        [presence] = desk.adapters.values()

        async def reject(_post: object) -> None:
            desk.stir()
            raise PostRejected("gone")

        presence.send = reject  # type: ignore[assignment,method-assign]  # the place is gone
        await pass_time(desk, clock, NEXT)
        await ended(desk, 1, "done")
        await desk.until(lambda: desk.stores.open(ScheduleStore).all()[0].state == "paused")

        assert desk.stores.open(ScheduleStore).all()[0].reason == "unreachable"


async def test_a_message_that_is_decided_twice_makes_one_schedule(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, _):
        said = to_demo('schedule "0 9 * * *" look')

        for _ in range(2):
            words = await desk.schedules.obey(command.read(said.text), said, ("demo",))

        assert words.startswith("Schedule 1 for Demo: look")
        assert len(desk.stores.open(ScheduleStore).all()) == 1


async def test_a_schedule_without_its_place_ends(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, _):
        said = to_demo('schedule "0 9 * * *" look', "gone")
        await desk.schedules.obey(command.read(said.text), said, ("demo",))

        [kept] = desk.schedules.all()
        run = to_delivery(kept, run_name(1, NEXT), missed=0, now=NEXT)

        assert not await desk.stores.open(ScheduleStore).begin(kept, NEXT + DAY, run)
        assert desk.schedules.all() == []
        assert await desk.stores.deliveries.outcome("web:demo", run_name(1, NEXT)) is None


async def test_a_due_time_is_used_once(tmp_path: Path) -> None:
    async with desk_at_eight(tmp_path) as (desk, _):
        await desk.hear(to_demo('schedule "0 9 * * *" look'))
        [kept] = desk.schedules.all()
        run = to_delivery(kept, run_name(1, NEXT), missed=0, now=NEXT)

        begun = [
            await desk.stores.open(ScheduleStore).begin(kept, NEXT + DAY, run) for _ in range(2)
        ]

        assert begun == [True, False]
