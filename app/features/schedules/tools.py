"""Lets an agent propose a schedule; a person agrees first and becomes its creator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.tools.wording import TOO_MANY_PROPOSED
from app.features.schedules import wording
from app.features.schedules.model import CLOSEST_MINUTES, FIELDS
from app.features.schedules.service import MOST, Schedules
from app.features.schedules.wording import moment
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.delegation import SERVICE
from app.model.types import TurnRef

WORDS_CHARACTERS: Final = 2_000
PROPOSED: Final = 3
"""Schedules of one conversation that people are asked about at once."""


class ScheduleTools:
    """The tool with which agents propose schedules."""

    def __init__(self, schedules: Schedules) -> None:
        self._book = schedules
        self._runtime = schedules.runtime

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return (
            Tool(
                "schedule_create",
                wording.SCHEDULE_CREATE.format(minutes=CLOSEST_MINUTES, most=MOST),
                {
                    "when": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 200,
                        "description": (
                            f"A cron expression of {FIELDS} fields, such as `0 9 * * 1-5`; a time "
                            "zone such as Europe/Berlin may follow."
                        ),
                    },
                    "task": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": WORDS_CHARACTERS,
                        "description": "What you are asked each time. It must make sense alone.",
                    },
                },
                ("schedules.write",),
                self._create,
            ),
        )

    async def _create(self, caller: Caller, arguments: Arguments) -> Result:
        session, agent = caller.session, caller.agent
        if caller.turn.surface.service == SERVICE:
            raise ToolRefused(wording.NOT_FOR_AGENTS)
        own = [each for each in self._book.in_place(session.place) if each.key.agent == agent]
        if len(own) >= MOST:
            raise ToolRefused(wording.TOO_MANY_SCHEDULES.format(most=MOST))
        if self._runtime.ledger.count_open(session.id, "schedule") >= PROPOSED:
            raise ToolRefused(TOO_MANY_PROPOSED.format(most=PROPOSED))
        times = await self._book.propose(
            agent,
            TurnRef(session.id, caller.turn.id),
            arguments["when"],
            arguments["task"].strip(),
            present=self._runtime.ledger.present,
            seconds=self._runtime.agents[agent].ask_seconds,
        )
        self._runtime.ledger.watch()
        return {
            "state": "asked",
            "next": [moment(at, "UTC") for at in times],
            "note": wording.SCHEDULE_ASKED,
        }


def list_tools(schedules: Schedules) -> Sequence[Tool]:
    """List the tool with which agents propose schedules."""
    return ScheduleTools(schedules).tools()
