"""Updates and asks of agents in the bridge's own types, never ACP's or a platform's.

An ask has a neutral view, which every service renders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from app.model.subagents import SubagentUpdate
from app.model.text import conceal, reveal


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
    diffs: tuple[FileDiff, ...] | None = None
    locations: tuple[str, ...] | None = None
    parent: str | None = None
    """The call whose sub-agent made this one."""


@dataclass(frozen=True, slots=True)
class FileDiff:
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
    """A line by the bridge about what an agent tried, or reports besides its answer."""

    text: str
    compaction: str = ""
    """The id of the compaction after which the agent goes on without what was said before."""


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
    | SubagentUpdate
    | UnknownUpdate
)


AskKind = Literal[
    "permission",
    "question",
    "pause",
    "repository",
    "offer",
    "memory",
    "schedule",
    "race",
    "background",
]
"""The bridge itself asks the last seven: whether a turn should go on, where it should work, whether
one should begin, whether an agent may keep a note, whether it gets a schedule, which answer of
several is taken, and whether what it has running may go on."""


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


class Withdrawal:
    """Tells those who show an ask that its agent takes it back."""

    def __init__(self) -> None:
        self.is_made = False
        self._calls: list[Callable[[], None]] = []

    def make(self) -> None:
        """Take it back."""
        self.is_made = True
        for call in self._calls:
            call()

    def then(self, call: Callable[[], None]) -> None:
        """Call this when it is made, or now if it was."""
        self._calls.append(call)
        if self.is_made:
            call()


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
    subagent: str = ""
    """The sub-agent that asks, by all that are on the way to it."""
    withdrawal: Withdrawal = field(default_factory=Withdrawal, compare=False, repr=False)
    """Made when the agent takes it back."""
    voice: str = ""
    """The agent that shows it, if it works for the one of the place and speaks for itself."""
    scopes: Mapping[str, GrantScope] = field(default_factory=dict)
    """What an answer allows from then on, by the option for it."""
    view: AskView | None = None
    """How it is shown in a place; made once, before it is stored."""
    whole: AskView | None = None
    """How the page and a terminal show it."""


AskState = Literal["open", "answered", "cancelled", "withdrawn", "lost", "expired"]


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
    failed: bool = False
    """Whether the agent reported that its model failed, though it ended the prompt as usual."""


FactKind = Literal["command", "path", "host", "file", "input", "change", "address", "quote"]
"""A `change` is a file before and after; an `input` is tool input that is none of the others; a
`quote` is text from others that is not part of what would be done."""


@dataclass(frozen=True, slots=True)
class AskFact:
    """One thing that an ask is about, exactly as it would run."""

    kind: FactKind
    text: str
    """Of a change: the new text."""
    path: str = ""
    """Of a change: the file."""
    old: str | None = None
    """Of a change: the text before; None if there was no file."""


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact as people see it: revealed, without secrets, whole or in part."""

    kind: FactKind
    text: str
    """Of a change: its first lines, each with `+`, `-` or a space before it."""
    tail: str = ""
    """The end of what is shown in part."""
    left: int = 0
    """How much is not shown: characters, of a change lines."""
    digest: str = ""
    """The beginning of the SHA-256 of a partly shown text, in its shown form."""
    path: str = ""
    added: int = 0
    removed: int = 0
    is_new: bool = False
    """Of a change: whether there was no such file."""


@dataclass(frozen=True, slots=True)
class AskView:
    """An ask as people see it; services render it and read nothing else."""

    title: str
    facts: tuple[ShownFact, ...] = ()
    secret: bool = False
    """Whether a known secret is hidden in it."""
    unsaid: Literal["", "call", "change"] = ""
    """What the agent did not say: what it does at all, or what it changes."""
    link: str = ""
    """Where the page shows it whole; empty if only this machine could open that."""
    agent: str = ""
    """What people call the agent that asks; empty if the title is a whole sentence."""
    act: str = ""
    """The kind of tool call it is about, where that is certain."""

    @property
    def cut(self) -> bool:
        """Whether something that would run is not shown whole, so it cannot be allowed here."""
        return any(fact.left and fact.kind not in {"change", "quote"} for fact in self.facts)

    @property
    def partial(self) -> bool:
        """Whether the page may show more of it."""
        return any(fact.left or fact.kind == "change" for fact in self.facts)

    @property
    def heading(self) -> str:
        """The title, unless the only fact says the same."""
        said = [conceal(fact.text).strip() for fact in self.facts]
        return "" if said == [conceal(self.title)] else self.title

    def map(self, change: Callable[[str], str]) -> AskView:
        """Change all the words in it."""
        return replace(
            self,
            title=change(self.title),
            facts=tuple(
                replace(
                    fact, text=change(fact.text), tail=change(fact.tail), path=change(fact.path)
                )
                for fact in self.facts
            ),
        )


def view_from(stored: Mapping[str, Any]) -> AskView:
    """Read a view that was stored as JSON."""
    return AskView(**{**stored, "facts": tuple(ShownFact(**fact) for fact in stored["facts"])})


def kept_view(text: str, data: Mapping[str, Any]) -> AskView:
    """Read the view of an ask from a row of the transcript.

    Rows of earlier releases have its text, and what the text leaves out.
    """
    if (stored := data.get("view")) is not None:
        return view_from(stored)
    about = reveal(str(data.get("about", "")), lines=True)
    return AskView(reveal(text, lines=True), (ShownFact("input", about),) if about else ())
