"""Values of the pages about what agents are told: files, their versions, a prompt; pure."""

from __future__ import annotations

from dataclasses import dataclass

_IDENTITY = "IDENTITY.md"
_LABELS = {
    _IDENTITY: "Who it is: name, emoji, colour, and a text it is told first.",
    "SOUL.md": "Its character: how it speaks and decides.",
    "AGENTS.md": "How to work here.",
    "TOOLS.md": "Which tools to use, and how.",
    "MEMORY.md": "What it remembers.",
    "USER.md": "Who the agents work for.",
}
HINT = "---\nname: Ada\nemoji: \N{OWL}\ncolour: teal\n---\nYou review code."
"""An example of an identity, shown where there is none."""


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
        return label_of(self.path)


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """An earlier version of a file."""

    number: int
    size: int
    written_at: float
    gone: bool


@dataclass(frozen=True, slots=True)
class Editor:
    """A file that is being changed."""

    path: str
    address: str
    back: str
    """The page it belongs to."""
    owner: str
    """What people call its agent; empty for a file of all agents."""
    text: str
    digest: str
    problem: str = ""
    versions: tuple[KeptVersion, ...] = ()
    there: bool = True

    @property
    def label(self) -> str:
        """What it is for."""
        return label_of(self.path)

    @property
    def hint(self) -> str:
        """What could be in it."""
        return HINT if self.path == _IDENTITY else ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an agent was told in a turn."""

    turn: int
    agent: str
    back: str
    text: str
    system: str = ""


def label_of(path: str) -> str:
    """Say what a file is for."""
    return _LABELS.get(path, "What it noted on this day.")
