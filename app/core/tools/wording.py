"""Words what agents read about the bridge's tools; pure."""

from __future__ import annotations

from typing import Final

NO_TOOL: Final = "There is no tool {name!r} for you. List your tools to see which there are."
TOO_LARGE: Final = "The arguments of {name} are too long: at most {limit} bytes."
NO_TURN: Final = "Tools work only during your turn, and it is over."
