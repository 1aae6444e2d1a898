"""Tells the other members of an installation what happened here, and takes what they tell.

A member is one running bridge process. A signal is a hint: what it is about was committed before,
and a sweep looks again at everything that a lost signal would have told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

Facts = Mapping[str, Any]
Handler = Callable[[Facts], None]
Answerer = Callable[[Facts], Awaitable[Facts]]


class Topic(StrEnum):
    """Everything that members tell each other."""

    NEWS = "news"
    """A session has new rows, or another state."""
    PLACE = "place"
    """Something was said in a place."""
    TEXT = "text"
    """Text that an agent is still writing."""
    FOLLOWED = "followed"
    """A page of another member shows a session or a place."""
    POSTS = "posts"
    """Posts were committed, for the leader to send."""
    PROGRESS = "progress"
    """A post shows more now."""
    SENT = "sent"
    """The platform has a post."""
    ASKS = "asks"
    """Asks were opened or closed."""
    INBOX = "inbox"
    """A delivery was stored, for the leader to read."""
    SETTLED = "settled"
    """What became of a delivery that a member waits for."""
    STOP = "stop"
    """Turns were stopped."""
    HURRY = "hurry"
    """A session has a next turn."""
    SHOW = "show"
    """A place wants more or less detail."""
    LIMITS = "limits"
    """A delegation began, whose time the leader watches."""
    ENDS = "ends"
    """Delegations ended, which the leader tells people."""
    GROUP = "group"
    """Agents work together, in steps that the leader takes."""
    NOTES = "notes"
    """Notes are to be kept, which the leader writes."""
    SCHEDULES = "schedules"
    """Schedules changed or were agreed to, which the leader runs."""
    AVAILABILITY = "availability"
    """What was found out about an agent."""
    CHOICES = "choices"
    """What an agent offers."""
    AGENTS = "agents"
    """Agents were added, changed or removed."""
    LABELS = "labels"
    """Agents are called something else."""
    CONFIGURE = "configure"
    """Asks for a session's live agent to be configured."""
    END = "end"
    """Asks for a session's turn and its process to have ended."""
    HOLDINGS = "holdings"
    """Asks what members hold of sessions on their disks."""
    PURGE = "purge"
    """A text is to be taken out of the files of every machine."""
    REMOVE = "remove"
    """Asks for what members hold of sessions to be removed."""
    PROBE = "probe"
    """Asks those that run agents to check one."""
    FORGET = "forget"
    """Asks members to take a person, whom the store has, off their disks."""
    HOME = "home"
    """Asks the member that has a session's home to copy it for a fork."""
    PAGE = "page"
    """Asks the member that has a session's files for a page about them."""
    CONVERSATION = "conversation"
    """Asks the leader to clear or to delete a conversation."""


class Signals(Protocol):
    """The other members, as one of them reaches them."""

    @property
    def name(self) -> str:
        """The name of this member; empty if it is alone."""
        ...

    @property
    def is_leader(self) -> bool:
        """Whether this member does what exactly one does: read, send, watch times."""
        ...

    def send(self, topic: Topic, **facts: Any) -> None:
        """Tell all other members soon; what does not fit into a signal is not told."""
        ...

    def on(self, topic: Topic, handler: Handler) -> None:
        """Have a function called with what another member tells; it must not wait."""
        ...

    def on_sweep(self, handler: Callable[[], None]) -> None:
        """Have a function called when signals may have been lost, and now and then."""
        ...

    async def ask(self, topic: Topic, *, seconds: float, **facts: Any) -> Sequence[Facts]:
        """Ask all other members, and wait until each of them has answered.

        Raises:
            TimeoutError: one that is alive did not answer in time.
        """
        ...

    def answer(self, topic: Topic, answerer: Answerer) -> None:
        """Have a function answer what other members ask."""
        ...

    def find_server(self, session_id: int) -> str | None:
        """Name the other member that served a session last, if it is there; None if none."""
        ...


class Alone:
    """The signals of a bridge that is the only member: there is no other to tell."""

    is_leader: Final = True
    name: Final = ""

    def send(self, topic: Topic, **facts: Any) -> None:
        """Do nothing."""

    def on(self, topic: Topic, handler: Handler) -> None:
        """Do nothing."""

    def on_sweep(self, handler: Callable[[], None]) -> None:
        """Do nothing: nothing is lost."""

    async def ask(self, topic: Topic, *, seconds: float, **facts: Any) -> Sequence[Facts]:  # noqa: ARG002 - the port
        """Return no answers."""
        return ()

    def answer(self, topic: Topic, answerer: Answerer) -> None:
        """Do nothing."""

    def find_server(self, session_id: int) -> None:
        """Name none."""


ALONE: Final = Alone()
