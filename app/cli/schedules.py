"""`schedules`: lists, makes and changes the schedules of the running bridge."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from app.cli.client import Client, connected_to_running
from app.cli.tables import show_json, show_table
from app.config import Configuration
from app.features.schedules.model import ScheduleIn, ScheduleOut

T = TypeVar("T")


def show_schedules(configuration: Configuration, *, agent: str | None, as_json: bool) -> None:
    """Show the schedules.

    Raises:
        BridgeError: no bridge runs, or it refuses.
    """
    found = _ask(configuration, lambda client: client.schedules(agent))
    if as_json:
        show_json([each.model_dump(mode="json") for each in found])
    elif not found:
        sys.stderr.write("No such schedules.\n")
    else:
        rows = [
            (str(each.id), each.agent, f"{each.service}:{each.place}", _rule(each), *_rest(each))
            for each in found
        ]
        show_table(("id", "agent", "place", "when", "state", "by", "words"), rows)


def add_schedule(configuration: Configuration, new: ScheduleIn) -> None:
    """Make a schedule.

    Raises:
        BridgeError: no bridge runs, or it refuses.
    """
    made = _ask(configuration, lambda client: client.add_schedule(new))
    sys.stdout.write(f"Schedule {made.id}: {_rule(made)}, {made.status}\n")


def change_schedule(
    configuration: Configuration, number: int, change: Literal["pause", "resume", "run"]
) -> None:
    """Pause, resume or run a schedule.

    Raises:
        BridgeError: no bridge runs, or it refuses.
    """
    changed = _ask(configuration, lambda client: client.change_schedule(number, change))
    sys.stdout.write(f"Schedule {changed.id}: {changed.status}\n")


def remove_schedule(configuration: Configuration, number: int) -> None:
    """End a schedule.

    Raises:
        BridgeError: no bridge runs, or it refuses.
    """
    _ask(configuration, lambda client: client.remove_schedule(number))
    sys.stdout.write(f"Schedule {number} was removed.\n")


def _ask(configuration: Configuration, call: Callable[[Client], Awaitable[T]]) -> T:
    async def run() -> T:
        async with connected_to_running(configuration) as client:
            return await call(client)

    return asyncio.run(run())


def _rule(schedule: ScheduleOut) -> str:
    return f"{schedule.expression} {schedule.zone}"


def _rest(schedule: ScheduleOut) -> tuple[str, str, str]:
    return schedule.status, schedule.creator, schedule.words
