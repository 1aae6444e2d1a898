"""Values of doors: how one agent process reaches the bridge's tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from app.model.tools import Tool
from app.model.types import Session

ToolExposure = Literal["tools", "skills", "mixed"]
"""How an agent gets tools: over MCP, as a command with a SKILL.md for each, or both."""

SOCKET: Final = "tools"
"""The name of the socket in the folder of a door."""

SESSION: Final = "agent_bridge.session"
"""The key under which a request carries the session whose agent sent it."""


@dataclass(frozen=True, slots=True)
class ToolDoor:
    """The access of one agent process to the tools that it may use."""

    folder: Path
    """Its own, with the socket; its sandbox shows it."""
    token: str
    """What it shows at the bridge's port; empty: it calls tools over its socket alone."""
    url: str
    """Where it calls tools if it reaches the bridge's port; empty: the bridge has none."""
    tools: tuple[Tool, ...]

    def __repr__(self) -> str:
        return f"ToolDoor({self.folder.name})"


class ToolDoors(Protocol):
    """Opens doors."""

    async def open(self, session: Session, *, with_token: bool) -> ToolDoor | None:
        """Open a door for a new process of a session; None if its agent can use no tool.

        With a token it can also call tools at the bridge's port; its socket needs none.
        """
        ...

    async def shut(self, door: ToolDoor) -> None:
        """Close the door of a process that has ended."""
        ...
