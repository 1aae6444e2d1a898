"""What an agent does, in our words, never ACP's or a platform's; and what it asks of people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class TextUpdate:
    """A piece of the agent's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtUpdate:
    """A piece of the agent's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUpdate:
    """The state of one tool call; fields that are None did not change."""

    call: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    input: Any = None
    output: str | None = None
    diffs: tuple[Diff, ...] | None = None
    locations: tuple[str, ...] | None = None
    parent: str | None = None
    """The call whose sub-agent made this one."""


@dataclass(frozen=True, slots=True)
class Diff:
    """One file before and after."""

    path: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One line of a plan."""

    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


@dataclass(frozen=True, slots=True)
class PlanUpdate:
    """The whole plan as it stands now."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """How much context and money the session has used."""

    used: int | None = None
    size: int | None = None
    cost: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """Something about the session itself changed: title, mode, commands, options."""

    what: Literal["title", "mode", "commands", "options"]
    value: Any


@dataclass(frozen=True, slots=True)
class FileUpdate:
    """A file in the midst of what an agent says: its bytes, or else where it lies."""

    name: str
    words: str
    """What stands for it in the answer."""
    data: bytes = b""
    address: str = ""


@dataclass(frozen=True, slots=True)
class UnknownUpdate:
    """A kind of update this bridge does not know, kept as it came."""

    kind: str
    raw: Mapping[str, Any]


BridgeUpdate = (
    TextUpdate
    | ThoughtUpdate
    | ToolUpdate
    | PlanUpdate
    | UsageUpdate
    | StateUpdate
    | FileUpdate
    | UnknownUpdate
)


AskKind = Literal["permission", "question", "pause", "repository", "offer"]
"""The bridge itself asks the last three: whether a turn shall go on, where it shall work, and
whether one shall begin."""


@dataclass(frozen=True, slots=True)
class AskOption:
    """One answer an agent offers, named as the agent names it."""

    id: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What an agent wants a person to decide; everything needed to show it alone."""

    call: str
    title: str
    options: tuple[AskOption, ...]
    tool: ToolUpdate | None = None
    arguments_hash: str = ""
    kind: AskKind = "permission"
    free_text: bool = False
    """Whether any words answer it, not only one of the options."""
    tool_kind: str = ""
    """What kind of call it is about, where that is beyond doubt."""
    subject: str = ""
    """What exactly would be run or touched."""
    url: str = ""
    """What a person is to open, such as where an account is linked; the title has it too."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An ask as it is kept."""

    id: int
    session: int
    turn: int
    title: str
    options: tuple[AskOption, ...]
    state: Literal["open", "answered", "cancelled", "lost", "expired"]
    answer: str | None = None
    answered_by: str | None = None
    kind: AskKind = "permission"
    free_text: bool = False
    deadline: float = 0.0
    """Until when it can be answered, in seconds since 1970."""
    subject: str = ""

    @property
    def answer_name(self) -> str:
        """What was answered, as people saw it."""
        chosen = (option.name for option in self.options if option.id == self.answer)
        return next(chosen, self.answer or "")


@dataclass(frozen=True, slots=True)
class PromptEnd:
    """How the agent ended a prompt."""

    stop_reason: str
    usage: UsageUpdate | None = None
