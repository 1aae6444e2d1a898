"""Values of the bridge's tools: what a tool is, who calls it, and what a call returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from app.errors import BridgeError
from app.model.types import Session, Turn

Arguments = Mapping[str, Any]
"""The arguments of a call, checked against the schema of its tool."""
Result = Mapping[str, Any]
"""What a call returns, as JSON."""
WAITS_SECONDS: Final = 60.0
"""How long an unknown agent waits for a result: the default of the usual MCP libraries."""


class ToolRefused(BridgeError):
    """A tool cannot do what it was called for; the message tells the agent why, and what to do."""


MARGIN_SECONDS: Final = 5.0
"""Time for a result to arrive before the agent's program stops waiting."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent that calls a tool, in the turn that it is working on."""

    session: Session
    turn: Turn
    waits_seconds: float = WAITS_SECONDS
    """How long its program waits for the result; a tool that takes longer answers before."""

    @property
    def patience(self) -> float:
        """How long a tool may take, so that its result still arrives."""
        return max(0.0, self.waits_seconds - MARGIN_SECONDS)

    @property
    def agent(self) -> str:
        """The id of the agent."""
        return self.session.key.agent


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool."""

    name: str
    description: str
    """What it is for, written for models."""
    parameters: Mapping[str, Any]
    """JSON schemas by parameter; all that have no `default` are required."""
    capabilities: tuple[str, ...]
    """What it can do, for the lists of the operator: `agents.read`, `place.write`."""
    run: Callable[[Caller, Arguments], Awaitable[Result]]
    """Does it; raises ToolRefused, Conflict or NotFound with words for the agent."""
    brings_words: bool = False
    """Whether its result holds words of others: people decide on what is noted after it."""
    off: str = ""
    """Why no agent can use it on this bridge; it is not listed then."""
    max_bytes: int = 64 * 1024
    """The longest arguments, as JSON."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        required = [name for name, each in self.parameters.items() if "default" not in each]
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": required,
            "additionalProperties": False,
        }


ToolExposure = Literal["tools", "skills", "mixed"]
"""How an agent gets tools: over MCP, as a command with a SKILL.md for each, or both."""


SOCKET: Final = "tools"
"""The name of the socket in the folder of a door."""


SESSION: Final = "agent_bridge.session"
"""The key under which a request carries the session whose agent sent it."""


@dataclass(frozen=True, slots=True)
class ToolEndpoint:
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


class ToolEndpoints(Protocol):
    """Opens doors."""

    async def open(self, session: Session, *, with_token: bool) -> ToolEndpoint | None:
        """Open a door for a new process of a session; None if its agent can use no tool.

        With a token it can also call tools at the bridge's port; its socket needs none.
        """
        ...

    async def shut(self, door: ToolEndpoint) -> None:
        """Close the door of a process that has ended."""
        ...


COMMAND: Final = "agent-bridge-tool"
"""The command by which an agent calls tools in a shell."""


SKILL: Final = """---
name: {name}
description: {summary}
---

# {tool}

{description}

Run the command with the arguments by name, quoted for the shell; what is no string is JSON:

    {command} {tool} --KEY VALUE

For long texts, write all arguments to standard input as one JSON object:

    {command} {tool} - <<'END'
    {{...}}
    END

It prints the result as JSON. If it fails, it prints why and ends with status 1.

The JSON schema of the arguments:

```json
{schema}
```
"""
