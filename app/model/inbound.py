"""Inbound values: an event as it arrived, what was heard in it, and what was decided on it.

An adapter parses, the intake decides, the store writes; they pass these values on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from app.model.keys import PlaceKey
from app.model.posts import NewPost
from app.model.types import BridgeSessionRequest, File, Speaker, TurnRef

DeliveryState = Literal["new", "done", "refused", "failed"]
WhileBusy = Literal["steer", "queue", "now"]
"""Where words go that are said to a working agent: into its running turn, if it takes them; into
the next one; or into one that takes the place of the running turn."""


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
    sent_at: float | None = None
    """When it was sent, if the bridge had to look for it; None if it arrived by itself."""


OLD_SECONDS = 3600.0
"""After that long, people are asked whether what they said is still wanted."""

GapCause = Literal["bridge", "socket", "hook", "access"]
"""What was not there: the bridge itself, its connection, the deliveries of the platform, or the
agent's access to where something was said."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which events of an adapter may not have arrived."""

    began: float
    ended: float
    cause: GapCause
    adapter: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """The outcome of a delivery, without its content."""

    seq: int
    adapter: str
    delivery_id: str
    received_at: float
    state: DeliveryState
    reason: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """Which earlier message a person sends again, unchanged."""

    message: int
    """The number of its row."""
    turn: int | None = None
    """The turn that failed with it, if one did."""


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
    """Whether it was said in public to no agent: not kept unless an agent is there."""
    pressed: bool = False
    """Whether it is a pressed button, not a message that others read."""
    title: str = ""
    link: str = ""
    said_at: float | None = None
    """When it was said, as its platform tells; None if it does not."""
    files: tuple[File, ...] = ()
    pointed: str = ""
    """What the message points at, in one line: a pull request, a file and its lines."""
    context: str = ""
    """What came with the message and is not its speaker's words: data for the agent."""
    metadata: object = None
    """What the service itself must remember of the event: a typed value of that service."""
    withdrawn: bool = False
    """Whether the platform says that the work was taken away: that counts from any person."""
    repository: str = ""
    """Where the conversation that it begins is to work: as in the command `repo`, or empty."""
    repeats: Repeat | None = None
    """The message whose words these are, if they were said before."""
    rejects: int | None = None
    """The open ask that the speaker rejects with these words."""
    hands_over: str = ""
    """The agent that the place belongs to from now on, if it is handed over with these words."""
    schedule: int | None = None
    """The schedule that it is a run of."""
    while_busy: WhileBusy = "steer"
    """Where it goes if the agent works."""
    announcement: str = ""
    """What shows the message to people who did not see it said."""
    sent_at: float | None = None
    """When it was said, if it was found late."""

    @property
    def words(self) -> str:
        """What was said after the mention: a command, an answer, or words for an agent."""
        return self.text if self.spoken is None else self.spoken


@dataclass(frozen=True, slots=True)
class Begun:
    """Work that begins in a place of another service."""

    texts: tuple[str, ...]
    """What people said."""
    link: str
    """The page of the conversation."""


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
    """An option's id, its position in the order shown, or the person's words."""
    speaker: Speaker


@dataclass(frozen=True, slots=True)
class Rated:
    """A person's verdict on an answer."""

    place: PlaceKey
    external: str
    marker: str
    """The mark of the post that shows the answer."""
    is_good: bool
    speaker: Speaker


@dataclass(frozen=True, slots=True)
class News:
    """Something that happened to changes that the agent may have proposed."""

    kind: Literal["checked", "merged", "closed", "reopened", "moved", "reviewed"]
    """`moved`: the branch that they are proposed for. `reviewed`: a verdict without words."""
    place: PlaceKey
    """The place whose messages it is ordered with."""
    repository: str
    branch: str
    """The one that was proposed, or the one that moved."""
    mark: str
    """What distinguishes it from other news of its kind: a commit, a time."""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Chore:
    """Something that the platform expects of the adapter itself; no agent has a part in it."""

    metadata: object
    """What is to be done: a typed value of that service."""


Inbound = Heard | Changed | Answered | Rated | News | Chore


@dataclass(frozen=True, slots=True)
class Naming:
    """The name of a repository that places are named after; its number never changes."""

    service: str
    host: str
    number: int
    name: str
    before: str = ""
    """What it was called, if the event says that it got another name."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """A repository's old and new name."""

    service: str
    host: str
    old: str
    new: str


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
        "hold",
        "verbosity",
        "repository",
        "remember",
        "tell",
    ]
    """`make way` stops what runs, and nothing else; `hand over` only if something waits to run.

    `tell` says something in the conversations that wait for a session.

    `repository` is the place's, `remember` that of new places in the same area. `hold` gives the
    place to an agent, `listen` takes it back.
    """
    session: int | None = None
    value: str = ""
    told: str = ""
    """What people call the agent that holds the place, where the transcript has to say so."""


@dataclass(frozen=True, slots=True)
class AskAnswer:
    """A message that answers an ask; it goes to the agent if the ask was answered before."""

    ask: int
    answer: str
    """The id of an option, or the words."""
    request: BridgeSessionRequest
    also_told: bool = False
    """Whether the agent gets the message as well, in a turn."""


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
    """Why no agent answers, shown to people."""
    answers: tuple[AskAnswer, ...] = ()
    """The asks that the message answers."""
    before: tuple[NewPost, ...] = ()
    """Posts that come before those of the turns."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a decision led to; a second arrival of the same message leads to nothing."""

    turns: tuple[TurnRef, ...] = ()
    posts: tuple[int, ...] = ()
    repeated: bool = False
    answered: tuple[int, ...] = ()
    """The asks that were answered."""


Correction = Literal["changed", "dropped", "late", "unknown"]
"""Outcome of an edit: `late` if the agent is already working on the original."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """What an edit led to."""

    outcome: Correction
    turns: tuple[TurnRef, ...] = ()
    """The turns whose messages it concerned."""
    posts: tuple[int, ...] = ()


class Reason(StrEnum):
    """Why a message goes to these agents, or nothing came of a delivery."""

    MENTIONED = "mentioned"
    REPLY = "reply"
    HANDED_OVER = "handed_over"
    HOLDER = "holder"
    ONLY_AGENT = "only_agent"
    ALL_LISTEN = "all_listen"
    LATEST = "latest"
    UNTAGGED_STOP = "untagged_stop"
    ANSWERS_ASK = "answers_ask"
    ANSWERED = "answered"
    CHORE = "chore"
    NEWS = "news"
    RATED = "rated"

    FROM_AGENT = "from_agent"
    NOT_MENTIONED = "not_mentioned"
    NONE_HERE = "none_here"
    SEVERAL_HERE = "several_here"
    NOT_FOR_US = "not_for_us"
    DECIDED_BEFORE = "decided_before"
    REPORTED_ELSEWHERE = "reported_elsewhere"
    NOTHING_PROPOSED = "nothing_proposed"
    NOTHING_NEW = "nothing_new"
    REFUSED = "refused"
    FOUND_LATE = "found_late"


class PauseReason(StrEnum):
    """Why a schedule is paused."""

    PERSON = "person"
    FAILURES = "failures"
    UNREACHABLE = "unreachable"
    ABSENT = "absent"
    NO_TIMES = "no_times"


RUN = "schedule:"
"""Starts the id of a run; no platform's ids start like this."""
