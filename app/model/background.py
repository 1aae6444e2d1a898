"""Values for what agents do by themselves: what goes on between turns, and what woke an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

WorkKind = Literal["command", "child", "timer", "goal", "agent"]
"""What goes on: a command, a sub-agent, a timer, an agent's own goal, or something unnamed."""
ABOUT_CHARACTERS: Final = 200
"""What is kept of the description of some work: a long command line."""


@dataclass(frozen=True, slots=True)
class Work:
    """Something that goes on between an agent's turns."""

    id: str
    """The agent's name for it."""
    kind: WorkKind
    about: str = ""
    """What it is, as the agent says: a command, a task."""
    turn: int | None = None
    """The turn that began it."""
    began_at: float = 0.0
    """When the bridge first knew of it, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Woken:
    """Why an agent began a turn by itself."""

    by: WorkKind = "agent"
    about: str = ""
    turn: int | None = None
    """The turn that began what woke it."""
