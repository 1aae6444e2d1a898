"""Values of pages that list all agents; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.server.page.view.roster import AgentView

_LABELS = {
    "IDENTITY.md": "Who it is: name, emoji, colour, and a text it is told first.",
    "SOUL.md": "Its character: how it speaks and decides.",
    "AGENTS.md": "How to work here.",
    "TOOLS.md": "Which tools to use, and how.",
    "MEMORY.md": "What it remembers.",
    "USER.md": "Who the agents work for.",
}


@dataclass(frozen=True, slots=True)
class FileLine:
    """A file in the list of an agent's files."""

    path: str
    address: str
    size: int | None = None
    """None if it is not there."""
    problem: str = ""

    @property
    def label(self) -> str:
        """What it is for."""
        return label_file(self.path)


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
class AgentList:
    """All agents, and those that were removed."""

    lines: tuple[AgentLine, ...]
    removed: tuple[tuple[str, float], ...]
    files: tuple[FileLine, ...]
    """What all of them are told."""
    csrf: str
    role: str
    """What the visitor may do; the style hides the rest."""
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


def label_file(path: str) -> str:
    """Say what a file is for."""
    return _LABELS.get(path, "What it noted on this day.")
