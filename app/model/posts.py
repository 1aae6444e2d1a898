"""Outbound values: one message in neutral form, notes in it, and what a platform made of it.

The store keeps the code of a note and its facts; `wording` writes the text on reading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from app.model.keys import SessionKey
from app.model.text import money, reveal
from app.model.updates import AskOption, AskView, PlanStep

Verbosity = Literal["quiet", "normal", "full"]


@dataclass(frozen=True, slots=True)
class ToolLine:
    """One tool call as a place shows it."""

    call: str
    title: str
    status: str = "pending"
    kind: str = ""
    output: str = ""
    """The beginning of its output."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing worth knowing about a turn: the branch, the PR, the cost, the page."""

    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class MadeFile:
    """A file that an agent made for people."""

    name: str
    media_type: str
    url: str
    """Its path within the uploads."""
    size: int
    link: str = ""
    """Where the page serves it; empty if only this machine could open that."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a turn pushed, and where it can be read."""

    repository: str
    branch: str
    link: str = ""
    """The pull request; empty without one."""
    number: int = 0
    """The number of the pull request."""
    files: int = 0
    added: int = 0
    removed: int = 0
    """How many files and lines differ from what was there before; 0 files: not known."""
    checks: Literal["", "running", "passed", "failed"] = ""
    """How the checks of it are; empty if there are none yet, or they cannot be read."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a turn that is over did, in numbers."""

    seconds: float = 0.0
    """How long it took; 0 if that is not known."""
    calls: int = 0
    """The tool calls that it made."""
    approvers: tuple[str, ...] = ()
    """The person behind each approval, in order."""
    cost: float = 0.0
    currency: str = ""
    estimated: bool = False
    """Whether the cost was worked out from the tokens."""
    pushed: Pushed | None = None
    on_hold: int = 0
    """Messages that a stop put on hold."""

    @property
    def price(self) -> str:
        """What the turn cost, for people; empty if that is not known."""
        return money(self.cost, self.currency, estimated=self.estimated)


@dataclass(frozen=True, slots=True)
class DelegatedLine:
    """What another agent was asked to do, as the post of the turn that asked shows it."""

    agent: str
    """What people call the agent."""
    task: str
    """The beginning of what it was asked."""
    state: Literal["queued", "working", "waiting", "done", "failed", "stopped"]
    id: int = 0
    """Tells it apart from others in the same post."""
    depth: int = 1
    link: str = ""
    """Its page; empty if only this machine could open that."""
    words: str = ""
    """The beginning of its answer, or why there is none."""
    seconds: float = 0.0
    """How long it took; 0 while it works, or if that is not known."""
    is_subagent: bool = False
    """Whether the agent runs it itself, inside its own session."""

    @property
    def is_over(self) -> bool:
        """Whether the agent that was asked is done with it."""
        return self.state in {"done", "failed", "stopped"}


@dataclass(frozen=True, slots=True)
class PostContent:
    """What a post says, before a platform renders it."""

    kind: Literal["turn", "ask", "notice", "files"]
    state: str = ""
    text: str = ""
    note: str = ""
    """One line by the bridge itself."""
    reason: Note | None = None
    """The code of that line; its text is made on reading."""
    plan: tuple[PlanStep, ...] = ()
    tools: tuple[ToolLine, ...] = ()
    thought: str = ""
    """The end of what the agent thought last."""
    narrated: int = 0
    """How much of the text was said before the last words: between tool calls."""
    outcome: Outcome | None = None
    """What the turn did, once it is over."""
    facts: tuple[Fact, ...] = ()
    """Links and names to show below it."""
    agent: str = ""
    """The name of the agent for people."""
    ask: int | None = None
    options: tuple[AskOption, ...] = ()
    free_text: bool = False
    """Whether any words answer the ask, not only one of the options."""
    url: str = ""
    """What the ask wants a person to open; the view has it too."""
    view: AskView | None = None
    """What the ask shows; every ask has one."""
    verbosity: Verbosity | None = None
    """How much the place wants to see; None: the default there."""
    asker: str = ""
    """The platform's id of the person whose words these answer."""
    mentions: tuple[str, ...] = ()
    """The platform's ids of people and groups whom this copy of an ask names."""
    message_id: str = ""
    """The message that these answer."""
    steered: tuple[str, ...] = ()
    """The messages that went into the turn while it ran."""
    files: tuple[MadeFile, ...] = ()
    """Files that the agent made for people; the only content of a post of the kind `files`."""
    delegated: tuple[DelegatedLine, ...] = ()
    """What it asked other agents to do, in order, each followed by what that one asked."""

    @property
    def said(self) -> str:
        """The words that a turn ended with."""
        return self.text[self.narrated :]

    @property
    def narration(self) -> str:
        """What was said before: between tool calls."""
        return self.text[: self.narrated].strip()

    @property
    def offered(self) -> tuple[AskOption, ...]:
        """The options that can be chosen where the post is shown."""
        is_open = self.state == "open"
        return tuple(option for option in self.options if is_open and not option.on_page)

    @property
    def asked(self) -> AskView:
        """What the ask shows; posts of earlier releases have only their text."""
        return self.view or AskView(reveal(self.text, lines=True))


@dataclass(frozen=True, slots=True)
class NewPost:
    """A post to be created; the key makes sure that it is created once."""

    key: str
    target: SessionKey
    content: PostContent
    session: int | None = None
    turn: int | None = None


PostState = Literal["new", "open", "closing", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Post:
    """One outbound message as it is kept."""

    id: int
    target: SessionKey
    marker: str
    content: PostContent
    state: PostState
    remote_id: str | None = None
    consumed: int = 0
    session: int | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class PostSend:
    """One call to a platform: what to do with which message."""

    op: Literal["create", "replace", "append", "finish"]
    target: SessionKey
    marker: str
    content: PostContent
    remote_id: str | None = None
    consumed: int = 0


@dataclass(frozen=True, slots=True)
class PostSent:
    """What the platform made of it, and how much of the text is settled there."""

    remote_id: str
    consumed: int = 0
    unfinished: bool = False
    """Whether people see it only after a further call; what is known so far is stored before."""
    again_after: float = 0.0
    """Seconds after which the post is sent again unless it ended: it is not shown in full yet."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What became of a text in a conversation on a platform."""

    changed: int = 0
    """How many of the agent's own messages no longer hold it."""
    left: tuple[str, ...] = ()
    """The messages that still hold it: a link to each, else what it is called."""


def texts_of(content: PostContent) -> list[str]:
    """List all texts of a content."""
    texts: list[str] = []

    def note(text: str) -> str:
        texts.append(text)
        return text

    redact_content(content, note)
    return texts


def redact_content(content: PostContent, redact: Callable[[str], str]) -> PostContent:
    """Redact all texts of a content."""
    return replace(
        content,
        text=redact(content.text),
        # Where the last words begin in the text without its secrets.
        narrated=len(redact(content.text[: content.narrated])),
        outcome=content.outcome and _redact_outcome(content.outcome, redact),
        note=redact(content.note),
        url=redact(content.url),
        view=content.view and content.view.map(redact),
        plan=tuple(replace(step, text=redact(step.text)) for step in content.plan),
        tools=tuple(
            replace(tool, title=redact(tool.title), output=redact(tool.output))
            for tool in content.tools
        ),
        thought=redact(content.thought),
        facts=tuple(
            replace(fact, text=redact(fact.text), url=redact(fact.url)) for fact in content.facts
        ),
        options=tuple(replace(option, name=redact(option.name)) for option in content.options),
        # Their content was checked when they were collected; their addresses must stay intact.
        files=tuple(replace(file, name=redact(file.name)) for file in content.files),
    )


def _redact_outcome(outcome: Outcome, redact: Callable[[str], str]) -> Outcome:
    pushed = outcome.pushed
    clean = pushed and replace(
        pushed,
        repository=redact(pushed.repository),
        branch=redact(pushed.branch),
        link=redact(pushed.link),
    )
    return replace(outcome, approvers=tuple(map(redact, outcome.approvers)), pushed=clean)


class NoteCode(StrEnum):
    """What happened."""

    STOPPED = "stopped"
    DROPPED = "dropped"
    CUT_OFF = "cut_off"
    CUT_OFF_TWICE = "cut_off_twice"
    NOT_NEEDED = "not_needed"
    EXPIRED = "expired"
    EXPIRED_ASK = "expired_ask"
    ASK_LOST = "ask_lost"
    ASK_WAITS = "ask_waits"
    ASKED_AGAIN = "asked_again"
    ANSWERED = "answered"
    CONTINUED = "continued"
    HANDED_OVER = "handed_over"
    OFFER_HANDED_ON = "offer_handed_on"
    OFFER_OVERTAKEN = "offer_overtaken"
    NOBODY_ANSWERS = "nobody_answers"
    MESSAGE_CHANGED = "message_changed"
    MESSAGE_TAKEN_BACK = "message_taken_back"
    RATED_GOOD = "rated_good"
    RATED_BAD = "rated_bad"
    SCHEDULE_FAILED = "schedule_failed"
    RENAMED = "renamed"
    CLEARED = "cleared"
    FORKED = "forked"
    FORKED_WHOLE = "forked_whole"
    DELEGATION_LIMIT = "delegation_limit"
    SUSPENDED = "suspended"
    STEERED = "steered"
    WOKEN = "woken"
    OWN_TURN_CUT = "own_turn_cut"
    OWN_TURNS_LIMIT = "own_turns_limit"
    WORK_LOST = "work_lost"
    WORK_ENDED = "work_ended"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that happened: its code, who did it, and what it is about."""

    code: NoteCode
    by: str = ""
    about: str = ""
