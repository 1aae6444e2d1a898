"""Reads what to roll, and rolls it."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from typing_extensions import override

from app.features.part import Part
from app.model.agents import Arguments, Caller, Result, Tool, ToolRefused
from app.model.inbound import Heard

_ROLL = re.compile(r"(?:roll\s+)?(\d{1,2})d(\d{1,3})", re.IGNORECASE)


class Dice(Part):
    """The dice of one bridge."""

    command_names = ("roll",)

    @override
    def read_command(self, line: str, agents: Mapping[str, str]) -> str | None:
        return line if line.lower().startswith("roll ") and _ROLL.fullmatch(line) else None

    @override
    async def obey(self, command: object, heard: Heard, agents: Sequence[str]) -> str:
        return f"{heard.speaker.name} rolls {self.roll(str(command))}."

    def roll(self, text: str) -> int | None:
        """Return the sum; None if the text names no dice."""
        found = _ROLL.fullmatch(text.strip())
        if found is None:
            return None
        count, sides = map(int, found.groups())
        return sum(random.randint(1, max(sides, 1)) for _ in range(count))  # noqa: S311 - a game

    async def roll_for(self, _caller: Caller, arguments: Arguments) -> Result:
        """Roll what an agent names."""
        total = self.roll(arguments["dice"])
        if total is None:
            raise ToolRefused("Name the dice as in 2d6.")
        return {"total": total}


def list_tools(dice: Dice) -> Sequence[Tool]:
    """List the tools that agents get."""
    what = {"type": "string", "description": "Such as 2d6: two dice with six sides."}
    return [Tool("dice_roll", "Rolls dice.", {"dice": what}, ("dice.roll",), dice.roll_for)]
