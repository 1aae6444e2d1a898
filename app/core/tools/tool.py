"""Values of the bridge's tools: what a tool is, who calls it, and what a call returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

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
