"""Frozen values that parts of the bridge pass to each other.

Nothing here knows a platform's payload, an ACP message or a table; a holder may keep a value for
as long as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from app.model.background import WorkKind
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import Note, Verbosity
from app.model.steering import Steered


class SessionState(StrEnum):
    """What a session is doing, in the words that people see."""

    IDLE = "idle"
    QUEUED = "queued"
    WORKING = "working"
    WAITING = "waiting"
    LIMITED = "limited"
    PARKED = "parked"
    REMOVED = "removed"


Activity = Literal["busy", "waiting"]
"""What an agent does in some conversation; one that does neither is idle."""


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


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who said something, by the platform's id and by the name people know."""

    id: str
    name: str
    kind: Literal["person", "agent", "bot"] = "person"
    number: str = field(default="", compare=False)
    """A stable id where `id` is a name that can change hands."""


@dataclass(frozen=True, slots=True)
class File:
    """A file that came with a message or that an agent made."""

    name: str
    media_type: str
    url: str
    origin: str = ""
    """Its address on its platform, in that platform's form."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message, where the agent finds it."""

    path: Path
    media_type: str


@dataclass(frozen=True, slots=True)
class BridgeSessionRequest:
    """What one agent is asked to do, before it is known whether its session exists."""

    external_session_id: str
    service_name: str
    """The plain service (`web`): repository and prompt look-up do not depend on the agent."""
    agent_name: str
    prompt: str
    speaker: Speaker
    message_id: str
    surface: PlaceKey
    files: tuple[File, ...] = ()
    descriptive_name: str = ""
    while_busy: Literal["steer", "queue"] = "queue"
    """Where it goes if the agent works: into the running turn, where the agent takes it, or into
    the next one."""

    @property
    def key(self) -> SessionKey:
        """The session key this request is for."""
        return SessionKey(self.service_name, self.external_session_id, self.agent_name)


@dataclass(frozen=True, slots=True)
class PlaceView:
    """What the floor needs to know about a place."""

    present: tuple[str, ...] = ()
    """Agents with a session here that was not removed."""
    latest: str | None = None
    """The agent addressed last."""
    listen: Untagged | None = None
    verbosity: Verbosity | None = None
    repository: str | None = None
    """What was chosen here: `owner/name`, `folder:<path>` or `none`."""
    holder: str | None = None
    """The agent that the place was handed over to."""
    predecessor: str | None = None
    """The agent whose branch the holder goes on with."""
    is_fork: bool = False
    """Whether what was said here at first was copied from another place."""


@dataclass(frozen=True, slots=True)
class TurnRef:
    """A turn and the session it belongs to."""

    session: int
    turn: int


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent was told of itself: a digest for each part, in one of its conversations."""

    acp_session_id: str
    parts: Mapping[str, str]


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
    """Counts how often the conversation started over (`new`)."""
    mode: str | None = None
    model: str | None = None
    link: str = ""
    updated_at: float = 0.0
    held: bool = False
    """Whether what waits was held by a stop."""
    failed: bool = False
    """Whether its last turn failed."""
    spent: float = 0.0
    """Dollars since a person last said go on."""
    read_others: bool = False
    """Whether a tool brought words of others into its conversation."""
    told: Told | None = field(default=None, compare=False)
    """What the agent was last told of itself."""
    attributes: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What plug-ins and other programs keep with it."""
    unshown: Mapping[str, int] = field(default_factory=dict, compare=False)
    """What its agent sent and no one can be shown: how often, by what it is."""


@dataclass(frozen=True, slots=True)
class Thread:
    """A place as a list shows it: what was said last, and who works there."""

    place: PlaceKey
    title: str
    link: str
    last: Entry
    sessions: tuple[Session, ...]
    repository: str = ""
    """Where its agents work, as it was chosen or cloned: `owner/name`, `folder:<path>`, `none`."""
    found: str = ""
    """The text that a search found in it."""
    number: int = 0
    """What names it to people and programs."""
    named: str = ""
    """The title that a person gave it."""
    pinned: bool = False
    archived: bool = False
    forked_from: PlaceKey | None = None
    helpers: tuple[Session, ...] = ()
    """The sessions elsewhere that work for its own right now."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and all that follows."""

    id: int
    session: int
    surface: SessionKey
    state: TurnState
    cuts: int = 0
    """How often the bridge died during this turn."""
    continued: bool = False
    """Whether an earlier attempt may have reached the agent."""
    held: bool = False
    stopped: bool = False
    prompt: str = ""
    system: str = ""
    """The system prompt that its agent was started with for this turn."""
    error: str = ""
    successor: int | None = None
    """The turn that continues its work, if it was parked and then answered."""
    woken_by: WorkKind | None = None
    """What woke the agent, if it began the turn by itself."""
    about: str = ""
    """What that is."""
    origin: int | None = None
    """The turn that began what woke the agent."""
    created_at: float = 0.0

    @property
    def is_own(self) -> bool:
        """Whether the agent began it and works on it without a prompt."""
        return self.woken_by is not None and not self.continued


@dataclass(frozen=True, slots=True)
class Message:
    """What a speaker said, as it is stored."""

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
    steered: Steered | None = None
    """Where it is if it was said to a working agent."""
    sent_at: float | None = None
    """When it was said, if it was found late."""

    @property
    def delay(self) -> float:
        """How many seconds too late it was found; 0 if it arrived by itself."""
        return 0.0 if self.sent_at is None else self.at - self.sent_at


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
    first_message_id: str
    """The first message that the bridge handled there; earlier ones were context."""
    last_message_id: str
    """The last message that the bridge knows of there."""
    updated_at: float


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message that no agent has begun to work on: its author may still change it."""

    place: PlaceKey
    message_id: str
    speaker_id: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the transcript, as the page and the API read it."""

    kind: Literal[
        "message", "text", "thought", "tool", "plan", "ask", "notice", "usage", "subagent"
    ]
    text: str = ""
    speaker: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    session: int | None = None
    turn: int | None = None
    id: int = 0
    at: float = 0.0
    note: Note | None = None
    """What the bridge itself did; its text is made on reading."""


@dataclass(frozen=True, slots=True)
class Overheard:
    """What people and other agents said around a session, for one of its turns."""

    entries: tuple[Entry, ...] = ()
    upto: int = 0
    """The last row of the transcript."""
    introduced: bool = False
    """Whether an earlier turn from the same surface was told the messages above it."""


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A running agent process, as needed to find and end it after a crash."""

    agent: str
    session: int
    group: int
    started: str
    marker: str
