"""Defines the JSON shapes of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.agents.files import LOG_BYTES, AgentFile, Version
from app.core.availability import Availability, State
from app.core.consent.ledger import ANSWER_CHARACTERS
from app.core.inbound import DeliveryLine
from app.core.posts import Post
from app.core.types import Entry, Session, Turn
from app.core.updates import Ask, AskKind

T = TypeVar("T")

TEXT_CHARACTERS = 100_000
"""The longest message: far more than people type."""
CHOICE_CHARACTERS = 1_000
"""The longest name of a repository or path of a folder."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class NewSession(_In):
    """A first message to an agent, in a new thread or in one that exists."""

    agent: str
    text: str = Field(min_length=1, max_length=TEXT_CHARACTERS)
    thread: str | None = Field(default=None, pattern=NAME)
    repository: str | None = Field(default=None, max_length=CHOICE_CHARACTERS)
    """Where a new thread works: `owner/name`, `folder:/path` or `none`."""


class NewMessage(_In):
    """A further message to an agent."""

    text: str = Field(min_length=1, max_length=TEXT_CHARACTERS)


class NewHandover(_In):
    """The agent that takes a conversation over, and what to send to it at once, if anything."""

    agent: str
    text: str | None = Field(default=None, min_length=1, max_length=TEXT_CHARACTERS)


class NewTitle(_In):
    """A new title for a session."""

    title: str = Field(min_length=1, max_length=300)


class NewAnswer(_In):
    """The chosen option, or the text where the ask takes free text."""

    option: str | None = None
    text: str | None = Field(default=None, min_length=1, max_length=ANSWER_CHARACTERS)

    @model_validator(mode="after")
    def _one_of_both(self) -> NewAnswer:
        if (self.option is None) == (self.text is None):
            raise ValueError("give either an option or a text")
        return self

    @property
    def answer(self) -> str:
        """The answer: the option or the text."""
        return self.option if self.option is not None else self.text or ""


class Page(BaseModel, Generic[T]):
    """Some items, and the cursor of the next page."""

    items: list[T]
    next: int | str | None = None


class LinkOut(BaseModel):
    """A log-in link."""

    url: str


class AvailabilityOut(BaseModel):
    """Whether an agent can work, and if not, why and what to do."""

    state: State
    reason: str = ""
    remedy: str = ""

    @classmethod
    def of(cls, found: Availability) -> AvailabilityOut:
        """Show what is known."""
        return cls(state=found.state, reason=found.reason, remedy=found.remedy)


class CheckOut(BaseModel):
    """What one check found about an agent."""

    name: str
    ok: bool
    words: str = ""

    @classmethod
    def all_of(cls, found: Availability) -> list[CheckOut]:
        """Show all checks."""
        return [cls(name=each.name, ok=each.ok, words=each.words) for each in found.checks]


class AgentOut(BaseModel):
    """An agent."""

    id: str
    name: str
    display_name: str
    description: str
    default: bool
    command: str
    isolation: str
    checkout: str = ""
    limits: str = ""
    emoji: str = ""
    visible: bool = True
    """Whether it is offered where people choose an agent."""
    services: list[str]
    availability: AvailabilityOut
    version: str = ""
    """As the agent reported it when it was last tried; empty before that."""
    checks: list[CheckOut] = []
    source: Literal["environment", "stored"] = "environment"
    """Where its entry is; one of the environment is changed there."""


class FileOut(BaseModel):
    """One file of an agent, or of all agents."""

    path: str
    size: int
    changed_at: float
    problem: str = ""
    """What is wrong with a file that was changed by hand."""

    @classmethod
    def of(cls, file: AgentFile) -> FileOut:
        """Show a file without its text."""
        return cls(path=file.path, size=file.size, changed_at=file.changed_at, problem=file.problem)


class VersionOut(BaseModel):
    """An earlier state of a file."""

    number: int
    size: int
    written_at: float
    gone: bool
    """Whether there was no such file."""


class FileDetail(BaseModel):
    """A file with its text, and what it was before."""

    path: str
    text: str = ""
    digest: str = ""
    """Changes with the text; empty if there is no such file any more."""
    problem: str = ""
    versions: list[VersionOut] = []

    @classmethod
    def of(cls, path: str, file: AgentFile | None, versions: Sequence[Version]) -> FileDetail:
        """Show a file; None if there is none any more."""
        kept = [
            VersionOut(number=v.number, size=v.size, written_at=v.written_at, gone=v.gone)
            for v in versions
        ]
        if file is None:
            return cls(path=path, versions=kept)
        return cls(
            path=path, text=file.text, digest=file.digest, problem=file.problem, versions=kept
        )


class NewText(BaseModel):
    """The text of a file."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=LOG_BYTES)
    expected: str = ""
    """The digest of the text to replace; without one, any text is replaced."""


class WantedVersion(_In):
    """The version to bring back, by default the last."""

    version: int | None = Field(default=None, ge=1)


class AgentDetail(AgentOut):
    """An agent with its entry."""

    entry: dict[str, Any]
    """The keys of its entry as in AGENTS_JSON, but `env` is the list of its variables' names."""
    credentials: dict[str, list[str]]
    """Which fields are stored for it, by service; those of the settings are not listed."""


class NoteOut(BaseModel):
    """One thing that an agent remembers."""

    id: str
    """Tells the notes of a day apart; another one once the note is changed."""
    day: str
    time: str
    """When it was noted, in UTC; empty if a person wrote it by hand."""
    session: int | None
    """The session it came from."""
    text: str


class NewAgent(BaseModel):
    """An agent to add: its name and the keys of an entry, as in AGENTS_JSON."""

    model_config = ConfigDict(extra="allow")

    name: str
    credentials: dict[str, dict[str, str]] = {}
    """What it needs on services, by service and field."""

    @property
    def entry(self) -> dict[str, Any]:
        """The keys of its entry."""
        return dict(self.model_extra or {})


class ChangedAgent(BaseModel):
    """Keys of an entry to change: tables are merged key by key, null removes a key."""

    model_config = ConfigDict(extra="allow")

    credentials: dict[str, dict[str, str | None] | None] = {}

    @property
    def entry(self) -> dict[str, Any]:
        """The keys that change."""
        return dict(self.model_extra or {})


class NewName(_In):
    """Another name for an agent."""

    to: str


class TurnDetail(BaseModel):
    """A turn with what its agent was told."""

    id: int
    session: int
    state: str
    error: str = ""
    continued: bool = False
    """Whether an earlier attempt may have reached the agent."""
    prompt: str = ""
    """The prompt as it was sent; empty before."""
    system_prompt: str = ""
    """The system prompt, if the agent was started for this turn and takes one."""

    @classmethod
    def of(cls, turn: Turn) -> TurnDetail:
        """Show a turn."""
        return cls(
            id=turn.id,
            session=turn.session,
            state=turn.state,
            error=turn.error,
            continued=turn.continued,
            prompt=turn.prompt,
            system_prompt=turn.system,
        )


class TurnOut(BaseModel):
    """A turn."""

    id: int
    state: str
    error: str = ""
    successor: int | None = None
    """The turn that continues its work, if it was parked and then answered."""

    @classmethod
    def of(cls, turn: Turn) -> TurnOut:
        """Show a turn."""
        return cls(id=turn.id, state=turn.state, error=turn.error, successor=turn.successor)


class SessionOut(BaseModel):
    """A session."""

    id: int
    key: str
    agent: str
    thread: str
    state: str
    title: str
    updated_at: float

    @classmethod
    def of(cls, session: Session, agent: str) -> SessionOut:
        """Show a session, under the name that its agent has now."""
        return cls(
            id=session.id,
            key=str(replace(session.key, agent=agent)),
            agent=agent,
            thread=session.place.name,
            state=session.state,
            title=session.title,
            updated_at=session.updated_at,
        )


class SessionTurn(SessionOut):
    """A session and the turn that a message became part of; none for a command."""

    turn: int | None
    repository: str | None = None
    """Where it works: `owner/name`, `folder:/path` or `none`."""


class HandoverOut(BaseModel):
    """Who a conversation belongs to now."""

    agent: str
    thread: str
    session: SessionTurn | None = None
    """The session of that agent, once it has one there."""


class SessionDetail(SessionTurn):
    """A session with its last turn and all its turns."""

    turns: list[TurnOut]

    @classmethod
    def with_turns(cls, session: SessionOut, turns: Sequence[Turn]) -> SessionDetail:
        """Show a session with its turns."""
        shown = [TurnOut.of(turn) for turn in turns]
        last = shown[-1].id if shown else None
        return cls(**session.model_dump(), turn=last, turns=shown)


class EntryOut(BaseModel):
    """One row of a transcript."""

    id: int
    turn: int | None
    kind: Literal["message", "text", "thought", "tool", "plan", "ask", "notice", "usage"]
    speaker: str
    text: str
    data: Mapping[str, Any]
    at: float

    @classmethod
    def of(cls, entry: Entry) -> EntryOut:
        """Show a row."""
        return cls(
            id=entry.id,
            turn=entry.turn,
            kind=entry.kind,
            speaker=entry.speaker,
            text=entry.text,
            data=entry.data,
            at=entry.at,
        )


class UnfinishedOut(BaseModel):
    """Text that an agent is still writing."""

    turn: int
    kind: Literal["text", "thought"]
    text: str


class OptionOut(BaseModel):
    """One answer an agent offers."""

    id: str
    name: str
    kind: str


class AskOut(BaseModel):
    """An ask."""

    id: int
    session: int
    turn: int
    kind: AskKind
    title: str
    subject: str
    """What exactly would be run or changed, if known."""
    state: str
    options: list[OptionOut]
    free_text: bool
    """Whether it takes any text, not only one of the options."""
    deadline: float
    """When it expires, in seconds since 1970."""
    answer: str | None
    answered_by: str | None

    @classmethod
    def of(cls, ask: Ask) -> AskOut:
        """Show an ask."""
        return cls(
            id=ask.id,
            session=ask.session,
            turn=ask.turn,
            kind=ask.kind,
            title=ask.title,
            subject=ask.subject,
            state=ask.state,
            options=[OptionOut(id=o.id, name=o.name, kind=o.kind) for o in ask.options],
            free_text=ask.free_text,
            deadline=ask.deadline,
            answer=ask.answer,
            answered_by=ask.answered_by,
        )


class DeliveryOut(BaseModel):
    """A delivery, without its content."""

    seq: int
    adapter: str
    delivery_id: str
    received_at: float
    state: str
    reason: str

    @classmethod
    def of(cls, line: DeliveryLine) -> DeliveryOut:
        """Show a delivery."""
        return cls(**{name: getattr(line, name) for name in DeliveryLine.__slots__})


class PostOut(BaseModel):
    """A post."""

    id: int
    target: str
    kind: str
    state: str
    text: str
    note: str

    @classmethod
    def of(cls, post: Post) -> PostOut:
        """Show a post."""
        return cls(
            id=post.id,
            target=str(post.target),
            kind=post.content.kind,
            state=post.state,
            text=post.content.text,
            note=post.content.note,
        )
