"""Defines the commands about schedules; each imports what it needs."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.framing import Json, examples, in_one_line, read_configuration

schedules = typer.Typer(
    help="Ask agents the same thing again and again.", no_args_is_help=True, rich_markup_mode=None
)

Schedule = Annotated[
    int, typer.Argument(metavar="ID", min=1, help="Its number; see `schedules list`.")
]


@schedules.command("list")
def list_schedules(
    agent: Annotated[str | None, typer.Option(help="Only schedules of this agent.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """List schedules, in the order in which they were made."""
    with in_one_line():
        from app.cli.schedules import show_schedules  # noqa: PLC0415 - 0.6 s

        show_schedules(read_configuration(), agent=agent, as_json=as_json)


@schedules.command(
    "add", epilog=examples('schedules add claude "0 9 * * 1-5" "Summarise the open issues."')
)
def add(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The name of the agent.")],
    when: Annotated[
        str,
        typer.Argument(
            metavar="WHEN", help="A cron expression in quotes, perhaps with a time zone at its end."
        ),
    ],
    words: Annotated[str, typer.Argument(metavar="WORDS", help="What to ask.")],
    thread: Annotated[
        str | None, typer.Option(help="The conversation where it runs; by default a new one.")
    ] = None,
) -> None:
    """Make a schedule in a thread of the page."""
    with in_one_line():
        from pydantic import ValidationError  # noqa: PLC0415 - 0.2 s

        from app.cli.schedules import add_schedule  # noqa: PLC0415 - 0.6 s
        from app.features.schedules.model import ScheduleIn, split  # noqa: PLC0415 - with it

        expression, zone = split(when)
        try:
            new = ScheduleIn(
                agent=agent, expression=expression, zone=zone or None, words=words, thread=thread
            )
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]
            raise typer.BadParameter(f"{wrong['loc'][0]}: {wrong['msg']}") from None
        add_schedule(read_configuration(), new)


@schedules.command("pause")
def pause(schedule: Schedule) -> None:
    """Pause a schedule."""
    with in_one_line():
        from app.cli.schedules import change_schedule  # noqa: PLC0415 - 0.6 s

        change_schedule(read_configuration(), schedule, "pause")


@schedules.command("resume")
def resume(schedule: Schedule) -> None:
    """Let a paused schedule go on."""
    with in_one_line():
        from app.cli.schedules import change_schedule  # noqa: PLC0415 - 0.6 s

        change_schedule(read_configuration(), schedule, "resume")


@schedules.command("run")
def run(schedule: Schedule) -> None:
    """Run a schedule now; its times stay as they are."""
    with in_one_line():
        from app.cli.schedules import change_schedule  # noqa: PLC0415 - 0.6 s

        change_schedule(read_configuration(), schedule, "run")


@schedules.command("remove")
def remove(schedule: Schedule) -> None:
    """End a schedule."""
    with in_one_line():
        from app.cli.schedules import remove_schedule  # noqa: PLC0415 - 0.6 s

        remove_schedule(read_configuration(), schedule)
