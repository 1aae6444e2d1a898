"""Defines the blocks of a thread on the page.

`id` names the element of a block, `home` the element it is appended to when it is new. Both are
made from stored numbers, so that every page gives a block the same id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.model.conversations import path_of
from app.model.delegation import Branch
from app.model.subagents import BELOW, OVER
from app.model.updates import AskView

NOTHING = AskView("")
_WORKSPACE = re.compile(r"/[^\s`'\"]*/workspaces/\d+-[a-z0-9-]+/")
LOG = "log"
"""The element that holds the whole thread."""


@dataclass(slots=True)
class SaidBlock:
    """A message."""

    id: str
    speaker: str
    text: str
    at: float
    files: tuple[Mapping[str, str], ...] = ()
    to: tuple[str, ...] = ()
    repeats: Mapping[str, int | None] | None = None
    """The earlier message that was sent again with it."""
    schedule: int | None = None
    """The schedule that it is a run of."""
    home: str = LOG


@dataclass(slots=True)
class Silence:
    """A message that no agent answers, and the agents that could."""

    id: str
    message: int
    agents: tuple[str, ...]
    over: bool = False
    """Whether an agent was asked since."""
    home: str = LOG


@dataclass(slots=True)
class FailedBlock:
    """The failure of a turn."""

    id: str
    row: int
    turn: int
    agent: str
    text: str
    facts: Mapping[str, Any]
    """The kind of failure, and what is known of it."""
    home: str
    over: bool = False
    """Whether the conversation went on since."""


@dataclass(slots=True)
class NoteBlock:
    """A notice from the bridge."""

    id: str
    text: str
    home: str = LOG
    agent: str = ""
    files: tuple[Mapping[str, str], ...] = ()
    """Files that an agent made for people."""
    session: int | None = None
    code: str = ""
    """The code of what happened, where it has one."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class WordsBlock:
    """A piece of an agent's text or thoughts."""

    id: str
    kind: Literal["text", "thought"]
    text: str
    home: str
    files: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    """The files in the text, each with the line that names it there."""


@dataclass(slots=True)
class Plan:
    """The current steps of a turn's plan."""

    id: str
    steps: tuple[Mapping[str, str], ...]
    home: str


@dataclass(slots=True)
class CallBlock:
    """The current state of a tool call, and the calls of its sub-agent."""

    id: str
    row: int
    data: Mapping[str, Any]
    home: str
    kind: str
    """Its kind when it began: a later update does not move it."""
    decided: str = ""
    """Who or what allowed or refused it."""
    asked: bool = False
    """Whether an open ask is about it."""
    rejected: str = ""
    """Who or what refused it, if it was; that is no failure."""
    began: float = 0.0
    """When it could begin: at its first row, or when it was allowed."""
    ended: float = 0.0
    stopped: bool = False
    """Whether its turn is over although it has not ended."""
    inside: list[Block] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The element that holds the calls of its sub-agent."""
        return f"{self.id}-in"

    @property
    def title(self) -> str:
        """The title of the call."""
        title = str(self.data.get("title") or self.data.get("kind") or "tool")
        # The words of a command stay as they are.
        return title if self.kind == "execute" else _WORKSPACE.sub("", title)

    @property
    def status(self) -> str:
        """The status of the call."""
        return str(self.data.get("status") or "pending")

    @property
    def has_ended(self) -> bool:
        """Whether the call has come to its end."""
        return self.status in {"completed", "failed"}


@dataclass(slots=True)
class Batch:
    """Calls of one harmless kind in a row, shown as one line."""

    id: str
    home: str
    calls: list[CallBlock] = field(default_factory=list)


@dataclass(slots=True)
class QuestionBlock:
    """An ask: a question for a person to decide."""

    id: str
    ask: int
    agent: str
    title: str
    options: tuple[Mapping[str, str], ...]
    call: str
    at: float
    home: str
    free_text: bool = False
    """Whether it takes any text."""
    kind: str = ""
    tool: str = ""
    """The kind of call that would run."""
    until: float | None = None
    """When the limit that it is about resets."""
    resumes: bool = False
    """Whether the work goes on then by itself."""
    view: AskView = NOTHING
    """The question, and what it is about word for word."""
    url: str = ""
    """The address that a person should open."""
    carded: bool = False
    """Whether its call has a card, which also shows the decision."""
    state: str = "open"
    answer: str = ""
    note: str = ""
    closed: float = 0.0

    @property
    def subagent(self) -> str:
        """The agent and its sub-agent that asks; empty if the agent itself does."""
        return self.view.agent if BELOW in self.view.agent else ""


@dataclass(slots=True)
class HeadBlock:
    """The agent of a turn, with duration and cost."""

    id: str
    agent: str
    began: float
    ended: float
    home: str
    cost: float | None = None
    currency: str = ""
    estimated: bool = False
    """Whether the cost was worked out from the tokens."""
    turn: int = 0
    """The number of the turn whose prompt can be read."""


@dataclass(slots=True)
class TurnBlock:
    """Everything one agent did in one turn."""

    id: str
    agent: str
    head: HeadBlock
    session: int
    number: int
    home: str = LOG
    body: list[Block] = field(default_factory=list)
    plan: Plan | None = None

    @property
    def place(self) -> str:
        """The element that holds the blocks of the turn."""
        return f"{self.id}-body"


@dataclass(slots=True)
class DelegatedHead(HeadBlock):
    """What an agent was asked by another one, and how far it is."""

    asked: Branch = field(kw_only=True)
    session: int = field(kw_only=True)
    state: str = "queued"

    @property
    def is_over(self) -> bool:
        """Whether the agent is done with it."""
        return self.state in {"done", "failed", "stopped"}

    @property
    def path(self) -> str:
        """The path of the agent's own page."""
        return path_of(self.asked.place)


@dataclass(slots=True)
class Delegated(TurnBlock):
    """Everything one agent did for another one, folded under the turn that asked."""

    head: DelegatedHead


@dataclass(slots=True)
class SubagentHead:
    """What a sub-agent was told to do, and how far it is."""

    id: str
    home: str
    number: int
    title: str
    facts: Mapping[str, Any]

    @property
    def state(self) -> str:
        """How far it is."""
        return str(self.facts["state"])

    @property
    def is_over(self) -> bool:
        """Whether it works no more."""
        return self.state in OVER

    @property
    def seconds(self) -> float:
        """How long it worked; 0 while it does."""
        ended = self.facts.get("ended_at")
        return 0.0 if ended is None else float(ended - self.facts["began_at"])


@dataclass(slots=True)
class SubagentStop:
    """The button that stops a sub-agent: outside of what folds, which is a button itself."""

    id: str
    home: str
    head: SubagentHead


@dataclass(slots=True)
class SubagentBlock:
    """Everything one sub-agent did, folded under the one that started it."""

    id: str
    head: SubagentHead
    stop: SubagentStop
    home: str
    inside: list[Block] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The element that holds what it did."""
        return f"{self.id}-in"


Block = (
    SaidBlock
    | Silence
    | FailedBlock
    | NoteBlock
    | WordsBlock
    | Plan
    | CallBlock
    | Batch
    | QuestionBlock
    | HeadBlock
    | TurnBlock
    | SubagentHead
    | SubagentStop
    | SubagentBlock
)
