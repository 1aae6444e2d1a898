"""Values of agents: whether one can work, what it offers, its tools, and what it may use; pure.

Denying counts more than allowing. No list of what is allowed means all, an empty one none. An agent
that can do more than the one that asks it must be named: a list of wildcards names no agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from app.errors import BridgeError
from app.model import wording
from app.model.types import Session, Turn

State = Literal["ready", "unavailable", "login_needed", "limited"]


_WORST_FIRST: Final[tuple[State, ...]] = ("unavailable", "login_needed", "limited")


_ORDER: Final = (
    "command",
    "address",
    "isolation",
    "key",
    "files",
    "initialize",
    "login",
    "limit",
    "last turn",
)


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """What one check found about an agent."""

    name: str
    ok: bool
    words: str
    remedy: str = ""
    state: State = "ready"
    """What the agent is because of it; `ready` if it can work all the same."""
    until: float | None = None
    """When that is over, in seconds since 1970; None if unknown."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether an agent can work, and if not, why and what to do."""

    state: State = "ready"
    reason: str = ""
    remedy: str = ""
    version: str = ""
    checks: tuple[AgentCheck, ...] = ()

    @classmethod
    def of(cls, checks: Iterable[AgentCheck], version: str = "") -> Availability:
        """Judge by the worst check."""
        listed = tuple(sorted(checks, key=lambda check: _ORDER.index(check.name)))
        for state in _WORST_FIRST:
            for check in listed:
                if check.state == state:
                    return cls(state, check.words, check.remedy, version, listed)
        return cls(version=version, checks=listed)

    @property
    def label(self) -> str:
        """The state in a word or two."""
        return wording.AVAILABILITY[self.state]

    @property
    def words(self) -> str:
        """What is wrong and what to do; empty if nothing is."""
        return " ".join(filter(None, (self.reason, self.remedy)))


def passed(name: str, words: str) -> AgentCheck:
    """Say that something is as it should be."""
    return AgentCheck(name, ok=True, words=words)


def unmet(name: str, words: str, remedy: str, state: State = "ready") -> AgentCheck:
    """Say that something is not, and what the agent is because of it."""
    return AgentCheck(name, ok=False, words=words, remedy=remedy, state=state)


def login_needed(name: str) -> AgentCheck:
    """Say that an agent of this name has to be logged in."""
    remedy = wording.LOG_IN.format(agent=name)
    return unmet("login", wording.NOT_LOGGED_IN, remedy, "login_needed")


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


Globs = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The lists of one agent."""

    tools_allow: Globs | None = None
    tools_deny: Globs = ()
    capabilities_allow: Globs | None = None
    capabilities_deny: Globs = ()
    agents_allow: Globs | None = None
    agents_deny: Globs = ()

    def allows_tool(self, name: str, capabilities: Iterable[str]) -> bool:
        """Tell whether it may use a tool: its name passes, and so does each capability."""
        if not _passes(name, self.tools_allow, self.tools_deny):
            return False
        return all(
            _passes(each, self.capabilities_allow, self.capabilities_deny) for each in capabilities
        )

    def allows_agent(self, name: str) -> bool:
        """Tell whether it sees another agent and may ask it."""
        return _passes(name, self.agents_allow, self.agents_deny)

    def names_agent(self, name: str) -> bool:
        """Tell whether the operator chose another agent for it, by more than wildcards."""
        chosen = tuple(glob for glob in self.agents_allow or () if glob.strip("*?"))
        return _passes(name, chosen, self.agents_deny)


def _passes(name: str, allow: Globs | None, deny: Globs) -> bool:
    if any(fnmatchcase(name, glob) for glob in deny):
        return False
    return allow is None or any(fnmatchcase(name, glob) for glob in allow)


@dataclass(frozen=True, slots=True)
class Choice:
    """One mode or model that an agent offers."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Option:
    """A further option that an agent offers."""

    id: str
    name: str
    values: tuple[Choice, ...] = ()
    """What it can be set to; none if it is on or off."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The modes, models and options that an agent offers, and those it begins with."""

    modes: tuple[Choice, ...] = ()
    models: tuple[Choice, ...] = ()
    mode: str = ""
    model: str = ""
    options: tuple[Option, ...] = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Choices:
        """Read choices from their fields."""

        def read(each: Mapping[str, Any]) -> Choice:
            return Choice(**each)

        options = (
            Option(each["id"], each["name"], tuple(map(read, each["values"])))
            for each in fields["options"]
        )
        return cls(
            tuple(map(read, fields["modes"])),
            tuple(map(read, fields["models"])),
            fields["mode"],
            fields["model"],
            tuple(options),
        )
