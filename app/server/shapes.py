"""Defines the JSON shapes of the API."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from app.core.consent.ledger import ANSWER_CHARACTERS
from app.model.conversations import KEY
from app.model.delegation import SERVICE as DELEGATIONS
from app.model.inbound import WhileBusy
from app.model.posts import Post
from app.model.types import Session, SessionState, Turn
from app.model.updates import AskKind
from app.services import PAGE

if TYPE_CHECKING:
    from app.core.runtime import Runtime

T = TypeVar("T")

TEXT_CHARACTERS = 100_000
"""The longest message: far more than people type."""
CHOICE_CHARACTERS = 1_000
"""The longest name of a repository or path of a folder."""
DISCONNECTED = "disconnected"
"""The state shown of a session that nothing wakes: its agent has no credentials there."""
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class Closed(BaseModel):
    """What a caller sends; a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Shown(BaseModel):
    """What a caller gets, read from the value that has the same names."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def of(cls, value: object) -> Self:
        """Show a value."""
        return cls.model_validate(value)


class NewSession(Closed):
    """A first message to an agent, in a new thread or in one that exists."""

    agent: str
    text: str = Field(min_length=1, max_length=TEXT_CHARACTERS)
    thread: str | None = Field(default=None, pattern=NAME)
    repository: str | None = Field(default=None, max_length=CHOICE_CHARACTERS)
    """Where a new thread works: `owner/name`, `folder:/path` or `none`."""


class NewMessage(Closed):
    """A further message to an agent."""

    text: str = Field(min_length=1, max_length=TEXT_CHARACTERS)
    while_busy: WhileBusy = "steer"
    """Where it goes if the agent works."""


class NewHandover(Closed):
    """The agent that takes a conversation over, and what to send to it at once, if anything."""

    agent: str
    text: str | None = Field(default=None, min_length=1, max_length=TEXT_CHARACTERS)


class SessionChanges(Closed):
    """A new title for a session, or some of its attributes; null removes one."""

    title: str | None = Field(default=None, min_length=1, max_length=300)
    attributes: dict[Annotated[str, Field(pattern=KEY)], JsonValue] | None = None

    @model_validator(mode="after")
    def _something(self) -> SessionChanges:
        if self.title is None and self.attributes is None:
            raise ValueError("give a title or attributes")
        try:
            # Half of a surrogate pair cannot be stored, and no number is infinite in JSON.
            json.dumps(self.attributes, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the attributes are no plain JSON: {error}") from error
        return self


class NewAnswer(Closed):
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
    plain: str = ""
    """The same link for browsers that do not find the page's name; empty where it has none."""


class TurnOut(Shown):
    """A turn."""

    id: int
    state: str
    error: str = ""
    successor: int | None = None
    """The turn that continues its work, if it was parked and then answered."""


class SubagentOut(Shown):
    """A sub-agent of a session."""

    id: int
    turn: int
    parent: int | None = None
    """The sub-agent that started it."""
    title: str
    task: str
    answer: str
    state: str
    can_stop: bool
    cost: float | None = None
    currency: str = ""
    began_at: float
    ended_at: float | None = None


def state_on(session: Session, services: Collection[str]) -> str:
    """Return the state of a session whose agent is on these services, and on the page."""
    is_asleep = session.state in {SessionState.IDLE, SessionState.PARKED}
    is_connected = session.place.service in {PAGE, DELEGATIONS, *services}
    return DISCONNECTED if is_asleep and not is_connected else session.state


def state_of(runtime: Runtime, session: Session) -> str:
    """Return the state of a session; `disconnected` if its agent left the session's service."""
    agent = session.key.agent
    if agent not in runtime.agents:
        return session.state
    return state_on(session, runtime.services_of(agent))


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
    def of(cls, session: Session, agent: str, state: str = "") -> SessionOut:
        """Show a session, under the name that its agent has now and in the state it has here."""
        return cls(
            id=session.id,
            key=str(replace(session.key, agent=agent)),
            agent=agent,
            thread=session.place.name,
            state=state or session.state,
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
    attributes: dict[str, JsonValue] = Field(default_factory=dict)
    """What other programs keep with it."""
    unshown: dict[str, int] = Field(default_factory=dict)
    """What its agent sent and the bridge could not show: how often, by what it is."""

    @classmethod
    def with_turns(cls, session: SessionOut, turns: Sequence[Turn]) -> SessionDetail:
        """Show a session with its turns."""
        last = turns[-1].id if turns else None
        return cls(**session.model_dump(), turn=last, turns=[TurnOut.of(turn) for turn in turns])


class EntryOut(Shown):
    """One row of a transcript."""

    id: int
    turn: int | None
    kind: Literal["message", "text", "thought", "tool", "plan", "ask", "notice", "usage"]
    speaker: str
    text: str
    data: Mapping[str, Any]
    at: float


class UnfinishedOut(Shown):
    """Text that an agent is still writing."""

    turn: int
    kind: Literal["text", "thought"]
    text: str


class OptionOut(Shown):
    """One answer an agent offers."""

    id: str
    name: str
    kind: str


class AskOut(Shown):
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


class DeliveryOut(Shown):
    """A delivery, without its content."""

    seq: int
    adapter: str
    delivery_id: str
    received_at: float
    state: str
    reason: str


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
