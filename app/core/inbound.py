"""What comes in: an event as it arrived, what was heard in it, and what was decided on it.

An adapter understands, the intake decides, the store writes; these are what they hand on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.keys import PlaceKey
from app.core.posts import NewPost
from app.core.types import BridgeSessionRequest, File, Speaker, TurnRef

DeliveryState = Literal["new", "done", "refused", "failed"]


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
    pressed: bool = False
    """Whether it is a button that was pressed, not something that everybody reads."""
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

    @property
    def words(self) -> str:
        """What was said to whoever is mentioned: a command, an answer, or words for an agent."""
        return self.text if self.spoken is None else self.spoken


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
class AskAnswer:
    """A message that answers an ask; it is said to the agent if somebody answered before."""

    ask: int
    answer: str
    """The id of an option, or the words."""
    request: BridgeSessionRequest


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
