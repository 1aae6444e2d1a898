"""The frozen values that parts of the bridge hand to each other.

Nothing here knows a platform's payload, an ACP message or a table; whoever holds one of these may
keep it for as long as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from app.core.keys import PlaceKey, SessionKey
from app.core.posts import NewPost, Verbosity


class SessionState(StrEnum):
    """What a session is doing, in the words that people see everywhere."""

    IDLE = "idle"
    QUEUED = "queued"
    WORKING = "working"
    WAITING = "waiting"
    LIMITED = "limited"
    PARKED = "parked"
    ENDED = "ended"
    REMOVED = "removed"


class TurnState(StrEnum):
    """How far a turn has come; the last three are final."""

    QUEUED = "queued"
    STARTING = "starting"
    PROMPTED = "prompted"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN_TURN_STATES = (TurnState.QUEUED, TurnState.STARTING, TurnState.PROMPTED, TurnState.PARKED)

Untagged = Literal["mention", "latest", "all"]
DeliveryState = Literal["new", "done", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who said something, by the platform's id and by the name people know."""

    id: str
    name: str
    kind: Literal["person", "agent", "bot"] = "person"


@dataclass(frozen=True, slots=True)
class File:
    """A file that came with a message or that an agent made."""

    name: str
    media_type: str
    url: str
    origin: str = ""
    """Where its platform keeps it, in words of that platform."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message, where the agent finds it."""

    path: Path
    media_type: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One inbound event as it arrived."""

    adapter: str
    delivery_id: str
    signature: str | None
    headers: Mapping[str, str]
    body: bytes
    received_at: float
    seq: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """What became of a delivery, without what it held."""

    seq: int
    adapter: str
    delivery_id: str
    received_at: float
    state: DeliveryState
    reason: str


@dataclass(frozen=True, slots=True)
class Heard:
    """Something said in a place, as the adapter that heard it understood it."""

    place: PlaceKey
    external: str
    message_id: str
    speaker: Speaker
    text: str
    spoken: str | None = None
    """The words after the mentions that the text begins with, where the service can tell."""
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    only_agent_answers: bool = True
    """Whether an untagged message may go to the only agent in the place."""
    overheard: bool = False
    """Whether it was said in public and to nobody here: not kept unless an agent is there."""
    title: str = ""
    link: str = ""
    files: tuple[File, ...] = ()
    pointed: str = ""
    """What the message points at, in one line: a pull request, a file and its lines."""
    context: str = ""
    """What came with the message and is not its speaker's words: data for the agent."""
    metadata: object = None
    """What the service itself must remember of the event: a typed value of that service."""
    withdrawn: bool = False
    """Whether the platform says that the work was taken away: that counts whoever did it."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A message that its speaker edited or took back; it never starts anything."""

    place: PlaceKey
    external: str
    message_id: str
    speaker: Speaker
    text: str | None
    """What it says now; None if it was taken back."""
    metadata: object = None
    """What the service itself must remember of the event: a typed value of that service."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A button or a reply that answers an ask."""

    ask: int
    option: str | int
    """An option's id or its place in the order shown, or the words of whoever was asked."""
    speaker: Speaker


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened to changes which the agent that hears of it may have proposed."""

    kind: Literal["checked", "merged", "closed", "reopened", "moved"]
    """`moved`: the branch that they are proposed for."""
    place: PlaceKey
    """What it is told in order with."""
    repository: str
    branch: str
    """The one that was proposed, or the one that moved."""
    mark: str
    """What tells it from other news of its kind: a commit, a time."""
    link: str = ""


Inbound = Heard | Changed | Answered | News


@dataclass(frozen=True, slots=True)
class Naming:
    """What a repository is called that places are named after; its number stays the same."""

    service: str
    host: str
    number: int
    name: str
    before: str = ""
    """What it was called, if the event says that it got another name."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """That a repository is called otherwise from now on."""

    service: str
    host: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class BridgeSessionRequest:
    """What one agent is asked to do, before anybody knows whether its session exists."""

    external_session_id: str
    service_name: str
    """The plain service (`slack`): repository and prompt look-up do not depend on the agent."""
    agent_name: str
    prompt: str
    speaker: Speaker
    message_id: str
    surface: PlaceKey
    files: tuple[File, ...] = ()
    descriptive_name: str = ""
    is_followup: bool = False
    service_metadata: object = None

    @property
    def key(self) -> SessionKey:
        """The session key this request is for."""
        return SessionKey(self.service_name, self.external_session_id, self.agent_name)


@dataclass(frozen=True, slots=True)
class PlaceView:
    """What the floor has to know of a place."""

    present: tuple[str, ...] = ()
    """Agents with a session here that was not removed."""
    latest: str | None = None
    """The agent addressed last."""
    listen: Untagged | None = None
    verbosity: Verbosity | None = None
    repository: str | None = None
    """What was chosen here: `owner/name`, `folder:<path>` or `none`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one message, to be written in one commit."""

    delivery: int
    heard: Heard
    outcome: DeliveryState
    reason: str
    requests: tuple[BridgeSessionRequest, ...] = ()
    posts: tuple[NewPost, ...] = ()
    effects: tuple[Effect, ...] = ()
    silence: str = ""
    """Why nobody answers, for those who wonder."""
    answers: tuple[AskAnswer, ...] = ()
    """The asks that the message answers."""


@dataclass(frozen=True, slots=True)
class AskAnswer:
    """A message that answers an ask; it is said to the agent if somebody answered before."""

    ask: int
    answer: str
    """The id of an option, or the words."""
    request: BridgeSessionRequest


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a decision led to; a second arrival of the same message leads to nothing."""

    turns: tuple[TurnRef, ...] = ()
    posts: tuple[int, ...] = ()
    repeated: bool = False
    answered: tuple[int, ...] = ()
    """The asks that were answered."""


Correction = Literal["changed", "dropped", "late", "unknown"]
"""What became of an edit: `late` if the agent is at work on the words as they were."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """What an edit led to."""

    outcome: Correction
    turns: tuple[TurnRef, ...] = ()
    """Whose messages it concerned."""
    posts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnRef:
    """A turn and the session it belongs to."""

    session: int
    turn: int


@dataclass(frozen=True, slots=True)
class Effect:
    """One lasting change that a command makes, committed together with the decision."""

    kind: Literal[
        "stop",
        "make way",
        "hand over",
        "drop",
        "release",
        "fresh",
        "mode",
        "model",
        "listen",
        "verbosity",
        "repository",
        "remember",
    ]
    """`make way` stops what runs, and nothing else; `hand over` only if something waits to run.

    `repository` is the place's, `remember` that of new places in the same area.
    """
    session: int | None = None
    value: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """One agent's work for a place."""

    id: int
    key: SessionKey
    place: PlaceKey
    state: SessionState
    title: str = ""
    acp_session_id: str | None = None
    generation: int = 1
    """Counts how often the conversation began afresh (`new`)."""
    mode: str | None = None
    model: str | None = None
    link: str = ""
    updated_at: float = 0.0
    held: bool = False
    """Whether what waits was held by a stop."""
    spent: float = 0.0
    """Dollars, since somebody last said go on."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A place as it stands in a list: what was said last, and who works there."""

    place: PlaceKey
    title: str
    link: str
    last: Entry
    sessions: tuple[Session, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and all that follows."""

    id: int
    session: int
    surface: SessionKey
    state: TurnState
    cuts: int = 0
    """How often the bridge died while the agent was at it."""
    continued: bool = False
    """Whether an earlier attempt may have reached the agent."""
    held: bool = False
    stopped: bool = False
    prompt: str = ""
    error: str = ""
    successor: int | None = None
    """The turn that goes on with its work, if it was parked and then answered."""


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody said, as it is kept."""

    speaker: Speaker
    text: str
    message_id: str
    at: float
    link: str = ""
    files: tuple[File, ...] = ()
    pointed: str = ""
    context: str = ""
    number: int = 0
    """The number of its row in the transcript."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was said in a place before the bridge listened there."""

    message_id: str
    speaker: Speaker
    text: str
    files: tuple[File, ...] = ()


@dataclass(frozen=True, slots=True)
class ActivePlace:
    """A conversation that may have gone on while the bridge did not listen."""

    key: SessionKey
    last_message_id: str
    """The last message that the bridge knows of there."""
    updated_at: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the transcript, as the page and the API read it."""

    kind: Literal["message", "text", "thought", "tool", "plan", "ask", "notice", "usage"]
    text: str = ""
    speaker: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    session: int | None = None
    turn: int | None = None
    id: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Overheard:
    """What people and other agents said around a session, as one of its turns has to be told."""

    entries: tuple[Entry, ...] = ()
    upto: int = 0
    """The last row of the transcript there is."""
    introduced: bool = False
    """Whether an earlier turn from the same surface was told what stood above it."""


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A running agent process, as needed to find and end it after a crash."""

    agent: str
    session: int
    group: int
    started: str
    marker: str
