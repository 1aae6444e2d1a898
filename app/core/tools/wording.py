"""Words what agents read about the bridge's tools; pure."""

from __future__ import annotations

from typing import Final

NO_TOOL: Final = "There is no tool {name!r} for you. List your tools to see which there are."
TOO_LARGE: Final = "The arguments of {name} are too long: at most {limit} bytes."
NO_TURN: Final = "Tools work only during your turn, and it is over."
BAD_ARGUMENTS: Final = "The arguments of {name} are wrong, at {where}: {reason}"
FAILED: Final = "It failed inside the bridge. Try again, or tell the person who asked you."
INSTRUCTIONS: Final = (
    "Tools of the bridge through which people talk to you: other agents, your memory, the place "
    "where you were asked, and pull requests. They work only during your turn."
)
