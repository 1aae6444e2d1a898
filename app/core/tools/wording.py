"""Words what agents read about the bridge's tools; pure."""

from __future__ import annotations

from typing import Final

NO_TOOL: Final = "There is no tool {name!r} for you. List your tools to see which there are."
TOO_LARGE: Final = "The arguments of {name} are too long: at most {limit} bytes."
NO_TURN: Final = "Tools work only during your turn, and it is over."

NOT_ASKED: Final = "You asked for nothing with the id {id!r}. agents_status lists what you did."
STILL_WORKS: Final = (
    "It is not done yet and goes on. Use agents_result with this id to get the answer; if you end "
    "your turn before, you are told the answer at the beginning of your next one."
)
