"""Outcomes of messages: what became of each, when, by which rule, and what a platform says of it.

An outcome is never stored: it is read off the rows that the pipe writes anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.model.keys import PlaceKey
from app.model.types import Speaker


class MessageOutcome(StrEnum):
    """What became of a message."""

    ANSWERED = "answered"
    STEERED = "steered"
    JOINED = "joined"
    QUEUED = "queued"
    WORKING = "working"
    WAITING = "waiting"
    """An agent waits for a person."""
    CARRIED_OUT = "carried_out"
    """A command, or the answer to an ask."""
    REFUSED = "refused"
    NOBODY_MEANT = "nobody_meant"
    STOPPED = "stopped"
    FAILED = "failed"
    UNSETTLED = "unsettled"
    """It arrived, and nothing is decided yet."""


OPEN_OUTCOMES = frozenset(
    {
        MessageOutcome.QUEUED,
        MessageOutcome.WORKING,
        MessageOutcome.WAITING,
        MessageOutcome.UNSETTLED,
    }
)


@dataclass(frozen=True, slots=True)
class Handling:
    """What one agent made of a message."""

    agent: str
    outcome: MessageOutcome
    turn: int | None = None
    queued_at: float | None = None
    first_sign_at: float | None = None
    """When people saw the first of its work."""
    ended_at: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class TracedMessage:
    """One message that reached the bridge, and its time line."""

    place: PlaceKey
    message_id: str
    speaker: Speaker
    link: str
    adapter: str
    """The adapter that brought it; empty if its delivery is not kept any more."""
    sent_at: float | None
    received_at: float | None
    """When it was stored, which is when it was acknowledged."""
    decided_at: float
    outcome: MessageOutcome
    rule: str
    """By which it was decided: a code, or the command."""
    why: str = ""
    """What the place was told about it."""
    late: bool = False
    """Whether the bridge had to look for it."""
    handlings: tuple[Handling, ...] = ()

    @property
    def first_sign_seconds(self) -> float | None:
        """How long it took until people saw something of the work on it."""
        return self._until([each.first_sign_at for each in self.handlings])

    @property
    def answer_seconds(self) -> float | None:
        """How long it took until it was answered by every agent that it is for."""
        ends = [each.ended_at for each in self.handlings if each.ended_at is not None]
        return self._until([max(ends)]) if ends and len(ends) == len(self.handlings) else None

    def _until(self, moments: Sequence[float | None]) -> float | None:
        began = self.sent_at or self.received_at or self.decided_at
        known = [each for each in moments if each is not None]
        return max(0.0, min(known) - began) if known else None


class Obstacle(StrEnum):
    """Why a message cannot have reached an agent, as its platform says."""

    ABSENT = "absent"
    """The app is not where it was said."""
    NOT_SUBSCRIBED = "not_subscribed"
    """The platform does not send such events to the app."""
    HOOK_OFF = "hook_off"
    """The platform does not send its events, or not there."""
    GONE = "gone"
    """There is no such message any more."""
    UNMENTIONED = "unmentioned"
    """It is there, and names none of the agents."""
    BY_BOT = "by_bot"
    """A bot wrote it that no agent listens to."""
    NOT_LISTENING = "not_listening"
    """The bridge does not hear from the platform now."""
    UNKNOWN = "unknown"
    """The platform does not say."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a platform says of the message that a link leads to."""

    place: PlaceKey | None = None
    message_id: str = ""
    sent_at: float | None = None
    obstacle: Obstacle | None = None
    """None if it should have reached the agent."""
    about: str = ""
    """What the obstacle is about: an event, a right, an address, the platform's words."""
