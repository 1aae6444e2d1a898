"""Values that the pages of agents show: their cards, one agent with its fields, a new one; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.server.page.view.personas import FileLine
from app.server.page.view.roster import AgentView

Kind = Literal[
    "text",
    "area",
    "choice",
    "flag",
    "words",
    "allowed",
    "command",
    "number",
    "pairs",
    "permissions",
]
Offered = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AgentField:
    """One key of an entry."""

    key: str
    label: str
    kind: Kind = "text"
    hint: str = ""
    choices: Offered = ()
    """What it can be, each with its words."""
    usual: str = ""
    """What holds if it is empty."""
    value: str = ""
    rules: str = ""
    """The rules of permissions that are no preset, as JSON."""
    problem: str = ""
    former: str | None = None
    """What it was before its last change, if that can be undone."""

    @property
    def wide(self) -> bool:
        """Whether it takes several lines."""
        return self.kind in {"area", "words", "allowed", "pairs", "permissions"}


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together."""

    title: str
    fields: tuple[AgentField, ...]


@dataclass(frozen=True, slots=True)
class AgentLine:
    """An agent in the list."""

    agent: AgentView
    driver: str = ""
    model: str = ""
    services: tuple[str, ...] = ()
    """The services where it is, as people call them."""
    sessions: int = 0
    stored: bool = False
    """Whether its entry can be changed here."""
    origin: str = ""
    """Where it comes from."""
    fixed: str = ""
    """Why it cannot be changed here, and what to do."""

    @property
    def path(self) -> str:
        """The address of its page."""
        return f"/agents/{self.agent.name}"


@dataclass(frozen=True, slots=True)
class Crew:
    """All agents, and those that were removed."""

    lines: tuple[AgentLine, ...]
    removed: tuple[tuple[str, float], ...]
    files: tuple[FileLine, ...]
    """What all of them are told."""
    csrf: str
    assets: Mapping[str, str]
    words: str = ""
    """What did not work."""
    told: str = ""
    """What a form has just done."""

    @property
    def offered(self) -> tuple[AgentLine, ...]:
        """Those that people can choose."""
        return tuple(line for line in self.lines if line.agent.visible)

    @property
    def hidden(self) -> tuple[AgentLine, ...]:
        """Those that only their name reaches."""
        return tuple(line for line in self.lines if not line.agent.visible)


@dataclass(frozen=True, slots=True)
class Credential:
    """A field of an agent's credentials on a service."""

    name: str
    label: str
    secret: bool
    required: bool
    kept: bool = False
    """Whether it has a value, which is not shown."""

    @property
    def long(self) -> bool:
        """Whether it has several lines, as keys in PEM have."""
        return self.secret and self.name.endswith("key")


@dataclass(frozen=True, slots=True)
class ServiceConnection:
    """An agent on a service, or on none."""

    name: str
    label: str
    fields: tuple[Credential, ...]
    present: bool = False
    """Whether the agent is there."""
    stored: bool = False
    """Whether its credentials can be changed here; else they are in the settings."""
    address: str = ""
    """Where its application is made."""
    steps: tuple[str, ...] = ()
    problem: str = ""
    unreachable: str = ""
    """Why no application can be made now."""
    notes: tuple[str, ...] = ()
    """What could be better there."""


@dataclass(frozen=True, slots=True)
class AgentDetails:
    """One agent with everything that can be changed."""

    line: AgentLine
    groups: tuple[Group, ...]
    variables: tuple[str, ...]
    """The names of its variables."""
    known: tuple[str, ...]
    """The variables that its program takes."""
    connections: tuple[ServiceConnection, ...]
    titles: tuple[str, ...]
    """The titles of its last sessions."""
    files: tuple[FileLine, ...]
    """Who it is and what it remembers."""
    tools: tuple[AgentTool, ...] = ()
    """The bridge's tools that it may use."""
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool of the bridge that an agent may use."""

    name: str
    words: str
    """What it is for, in one sentence."""
    capabilities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A known agent program that a new agent can be."""

    name: str
    title: str
    install: str = ""
    """The command that installs it, if it is not here."""
    mark: str = ""
    """Whether it is here, as far as is known."""
    login: str = ""
    keys: tuple[str, ...] = ()
    """The secret variables it takes."""
    description: str = ""


@dataclass(frozen=True, slots=True)
class NewForm:
    """The form for a new agent."""

    programs: tuple[Program, ...]
    picked: Program | None
    """None for a command that is not known."""
    groups: tuple[Group, ...]
    name: str = ""
    problems: Mapping[str, str] = field(default_factory=dict)
