"""Updates and asks of agents in the bridge's own types, never ACP's or a platform's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app.model.ask_view import AskFact, AskView


@dataclass(frozen=True, slots=True)
class TextUpdate:
    """A piece of the agent's answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtUpdate:
    """A piece of the agent's thinking, or of what a sub-agent says."""

    text: str
    parent: str | None = None
    """The call whose sub-agent says it."""


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
    """The whole current plan."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a conversation, each counted once by what it costs."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """How much context and money the session has used."""

    used: int | None = None
    size: int | None = None
    cost: float | None = None
    currency: str | None = None
    tokens: Tokens | None = None
    estimated: bool = False
    """Whether the bridge worked the cost out from the tokens."""


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """Something about the session itself changed: title, mode, commands, options."""

    what: Literal["title", "mode", "commands", "options"]
    value: Any


@dataclass(frozen=True, slots=True)
class FileUpdate:
    """A file within an agent's answer: its bytes, or else its address."""

    name: str
    words: str
    """Its placeholder in the answer."""
    data: bytes = b""
    address: str = ""


@dataclass(frozen=True, slots=True)
class NoticeUpdate:
    """A line by the bridge about what an agent tried."""

    text: str


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
    | NoticeUpdate
    | UnknownUpdate
)


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


AskKind = Literal[
    "permission", "question", "pause", "repository", "offer", "memory", "schedule", "race"
]
"""The bridge itself asks the last five: whether a turn should go on, where it should work, whether
one should begin, whether an agent may keep a note, and whether it gets a schedule."""


ASK_PERSON: Final = "ask_person"
"""The kind of call of a question that an agent asks with a tool of the bridge."""


@dataclass(frozen=True, slots=True)
class AskOption:
    """One answer an agent offers, named as the agent names it."""

    id: str
    name: str
    kind: str
    on_page: bool = False
    """Whether it can be chosen only on the page, because no other surface shows the whole ask."""
    url: str = ""
    """The address of what it means, such as a repository; a reply with it chooses it."""


GrantExtent = Literal["command", "paths", "workspace", "call"]
"""How far an "always" goes: one command, some files, all files of the workspace, or one call."""


@dataclass(frozen=True, slots=True)
class GrantScope:
    """Everything that one "always" covers."""

    kind: str
    """The kind of call; empty if the agent claims none."""
    extent: GrantExtent
    subject: str
    """What people see of it: the command, the paths, or the call."""
    digest: str
    """Of the exact words, by which calls are compared."""


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
    """Whether free text answers it, not only one of the options."""
    tool_kind: str = ""
    """The kind of call it is about, where that is certain."""
    subject: str = ""
    """What exactly would be run or touched."""
    until: float | None = None
    """When the limit that it is about resets."""
    url: str = ""
    """An address for a person to open, such as to link an account; a fact has it too."""
    facts: tuple[AskFact, ...] = ()
    """What it is about, word for word."""
    agent: str = ""
    """What people call the agent that asks."""
    voice: str = ""
    """The agent that shows it, if it works for the one of the place and speaks for itself."""
    scopes: Mapping[str, GrantScope] = field(default_factory=dict)
    """What an answer allows from then on, by the option for it."""
    view: AskView | None = None
    """How it is shown in a place; made once, before it is stored."""
    whole: AskView | None = None
    """How the page and a terminal show it."""


AskState = Literal["open", "answered", "cancelled", "lost", "expired"]


@dataclass(frozen=True, slots=True)
class Ask:
    """An ask as it is stored."""

    id: int
    session: int
    turn: int
    title: str
    options: tuple[AskOption, ...]
    state: AskState
    answer: str | None = None
    answered_by: str | None = None
    kind: AskKind = "permission"
    free_text: bool = False
    deadline: float = 0.0
    """Until when it can be answered, in seconds since 1970."""
    subject: str = ""
    host: int | None = None
    """The session in whose place people see it, if that is another one."""
    created_at: float = 0.0

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
