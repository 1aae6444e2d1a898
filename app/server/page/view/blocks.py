"""Defines the blocks of a thread on the page, and which of them a page shows at first.

`id` names the element of a block, `home` the element it is appended to when it is new. Both are
made from stored numbers, so that every page gives a block the same id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from app.model.conversations import path_of
from app.model.delegation import Branch
from app.model.updates import AskView

NOTHING = AskView("")
_WORKSPACE = re.compile(r"/[^\s`'\"]*/workspaces/\d+-[a-z0-9-]+/")
LOG = "log"
"""The element that holds the whole thread."""
STEPS = 40
"""Steps of a turn that a page shows at first: more than people scroll through."""
MORE_STEPS = 200
"""Steps that are fetched at once."""
FAILURES = 20
"""Failed steps that are shown although they are earlier, the last of them."""
STEP_CHARACTERS = 2_500
"""Characters of a text that count as a step: about a screen."""


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
)


@dataclass(frozen=True, slots=True)
class Split:
    """The blocks of a turn or of a sub-agent, split into those to fetch and those to show."""

    earlier: Sequence[Block]
    shown: Sequence[Block]
    until: str = ""
    """The block after the last one that is hidden."""

    @property
    def calls(self) -> int:
        """How many calls are hidden."""
        return sum(len(calls_of(block)) for block in self.earlier)


def split(blocks: Sequence[Block], limit: int) -> Split:
    """Hide all but the last steps, the last failures, and what is not over yet.

    A call is a step; so is each long piece of text.
    """
    cut, steps = len(blocks), 0
    while cut and steps < limit:
        cut -= 1
        steps += _steps(blocks[cut])
    if not any(map(_steps, islice(blocks, cut))):
        return Split((), blocks)
    before = blocks[:cut]
    failures = [block.id for block in before if any(map(_has_failed, calls_of(block)))]
    kept = set(failures[-FAILURES:])
    earlier = [block for block in before if not (_stays(block) or block.id in kept)]
    if not any(map(_steps, earlier)):
        return Split((), blocks)
    hidden = {block.id for block in earlier}
    shown = [block for block in blocks if block.id not in hidden]
    while blocks[cut - 1].id not in hidden:
        cut -= 1
    return Split(earlier, shown, blocks[cut].id)


def calls_of(block: Block) -> Sequence[CallBlock]:
    """Return the calls that a block shows, without those of sub-agents."""
    match block:
        case CallBlock():
            return (block,)
        case Batch():
            return block.calls
    return ()


def _steps(block: Block) -> int:
    if isinstance(block, WordsBlock):
        return len(block.text) // STEP_CHARACTERS
    return len(calls_of(block))


def _stays(block: Block) -> bool:
    match block:
        case Plan() | NoteBlock() | FailedBlock() | TurnBlock():
            return True
        case QuestionBlock():
            return block.state == "open"
    return any(not (call.has_ended or call.stopped) for call in calls_of(block))


def _has_failed(call: CallBlock) -> bool:
    return call.status == "failed" and not call.rejected
