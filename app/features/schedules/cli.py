"""`schedules`: lists, makes and changes the schedules of the running bridge."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import ValidationError
from typer import Argument, Option

from app.features.schedules.model import ScheduleIn, ScheduleOut, split
from app.terminal.api import Api
from app.terminal.framing import Json, add_group, commands, examples, show_list

COMMANDS = commands()
schedules = add_group(COMMANDS, "schedules", "Ask agents the same thing again and again.")

Schedule = Annotated[int, Argument(metavar="ID", min=1, help="Its number; see `schedules list`.")]


@schedules.command("list")
def list_schedules(
    agent: Annotated[str | None, Option(help="Only schedules of this agent.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """List schedules, in the order in which they were made."""
    show_list(
        Api().items(ScheduleOut, "/schedules", agent=agent),
        ("id", "agent", "place", "when", "state", "by", "words"),
        lambda each: (
            *(each.id, each.agent, f"{each.service}:{each.place}"),
            *(f"{each.expression} {each.zone}", each.status, each.creator, each.words),
        ),
        as_json=as_json,
        nothing="No such schedules.",
    )


@schedules.command(
    "add", epilog=examples('schedules add claude "0 9 * * 1-5" "Summarise the open issues."')
)
def add(
    agent: Annotated[str, Argument(metavar="AGENT", help="The name of the agent.")],
    when: Annotated[
        str,
        Argument(
            metavar="WHEN", help="A cron expression in quotes, perhaps with a time zone at its end."
        ),
    ],
    words: Annotated[str, Argument(metavar="WORDS", help="What to ask.")],
    thread: Annotated[
        str | None, Option(help="The conversation where it runs; by default a new one.")
    ] = None,
) -> None:
    """Make a schedule in a thread of the page."""
    expression, zone = split(when)
    try:
        new = ScheduleIn(
            agent=agent, expression=expression, zone=zone or None, words=words, thread=thread
        )
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        raise typer.BadParameter(f"{wrong['loc'][0]}: {wrong['msg']}") from None
    made = Api().post(ScheduleOut, "/schedules", **new.model_dump(exclude_none=True))
    sys.stdout.write(f"Schedule {made.id}: {made.expression} {made.zone}, {made.status}\n")


@schedules.command("pause")
def pause(schedule: Schedule) -> None:
    """Pause a schedule."""
    _change(schedule, "pause")


@schedules.command("resume")
def resume(schedule: Schedule) -> None:
    """Let a paused schedule go on."""
    _change(schedule, "resume")


@schedules.command("run")
def run(schedule: Schedule) -> None:
    """Run a schedule now; its times stay as they are."""
    _change(schedule, "run")


@schedules.command("remove")
def remove(schedule: Schedule) -> None:
    """End a schedule."""
    Api().request("DELETE", f"/schedules/{schedule}")
    sys.stdout.write(f"Schedule {schedule} was removed.\n")


def _change(schedule: int, change: str) -> None:
    changed = Api().post(ScheduleOut, f"/schedules/{schedule}/{change}")
    sys.stdout.write(f"Schedule {changed.id}: {changed.status}\n")
