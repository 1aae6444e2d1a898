"""Tells the other members of an installation what happened here, and takes what they tell.

A member is one running bridge process. A signal is a hint: what it is about was committed before,
and a sweep looks again at everything that a lost signal would have told. Each member hears every
text of the others, in order per member; some may be lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol
from uuid import uuid4

from app.tasks import Tasks

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
    SUBAGENT = "subagent"
    """Asks for one sub-agent of a session to be stopped."""
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


logger = logging.getLogger(__name__)

MOST_BYTES = 7_900
"""The longest signal: PostgreSQL takes less than 8000 bytes."""
PART_CHARACTERS = 7_500
"""A part of an answer that is longer."""
LOOK_SECONDS = 1.0
"""How often a member that asks looks which members are left."""
_REPLY: Final = "reply"
_FAILED: Final[Facts] = {"failed": True}
"""The answer of a member that has none."""


@dataclass(frozen=True, slots=True)
class _Signal:
    """What one member told."""

    sender: str
    topic: str
    facts: Any
    """Facts, or a part of an answer."""
    number: str
    """Of a question or its answer; else empty."""


class Switchboard(ABC):
    """Signals over a channel on which all members hear every text, in order per member."""

    def __init__(self, name: str, members: Callable[[], Awaitable[Collection[str]]]) -> None:
        """Speak as the member of this name; `members` lists those that are alive."""
        self.name = name
        self._members = members
        self._handlers: dict[str, list[Handler]] = {}
        self._answerers: dict[str, Answerer] = {}
        self._sweepers: list[Callable[[], None]] = []
        self._replies: dict[str, dict[str, Facts]] = {}
        self._parts: dict[tuple[str, str], list[str]] = {}
        """What has come of answers in several parts, by question and member."""
        self._came = asyncio.Event()
        self._tasks = Tasks("signals")
        self.is_leader = False
        """Whether this member is the leader; set once, before its work as such begins."""

    @abstractmethod
    def transmit(self, text: str) -> None:
        """Put a text on the channel soon."""

    def find_server(self, session_id: int) -> str | None:  # noqa: ARG002 - the port
        """Name none, where that is not known."""
        return None

    async def close(self) -> None:
        """Answer no more."""
        await self._tasks.close()

    def send(self, topic: Topic, **facts: Any) -> None:
        """Tell all other members soon; what does not fit into a signal is not told."""
        self._put([self.name, topic, facts])

    def on(self, topic: Topic, handler: Handler) -> None:
        """Have a function called with what another member tells; it must not wait."""
        self._handlers.setdefault(topic, []).append(handler)

    def on_sweep(self, handler: Callable[[], None]) -> None:
        """Have a function called when signals may have been lost, and now and then."""
        self._sweepers.append(handler)

    def answer(self, topic: Topic, answerer: Answerer) -> None:
        """Have a function answer what other members ask."""
        self._answerers[topic] = answerer

    async def ask(self, topic: Topic, *, seconds: float, **facts: Any) -> Sequence[Facts]:
        """Ask all other members, and wait until each of them has answered.

        Raises:
            TimeoutError: one that is alive did not answer in time, or could not.
        """
        number = uuid4().hex
        replies = self._replies[number] = {}
        try:
            async with asyncio.timeout(seconds):
                if not self._put([self.name, topic, facts, number]):
                    raise TimeoutError("the question is too long")
                while set(await self._members()) - {self.name, *replies}:
                    await self._wait()
                if _FAILED in replies.values():
                    raise TimeoutError("a member could not answer")
        finally:
            del self._replies[number]
            self._parts = {key: parts for key, parts in self._parts.items() if key[0] != number}
        return list(replies.values())

    async def _wait(self) -> None:
        """Wait for the next reply, or until it is time to see who is left."""
        self._came.clear()
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._came.wait()
        except TimeoutError:
            return

    def receive(self, text: str) -> None:
        """Take a text from the channel; what no member would send is dropped."""
        try:
            signal = _parse(text)
            if signal.sender == self.name:
                return
            if signal.topic == _REPLY:
                self._take_reply(signal.sender, signal.number, signal.facts)
                return
        except (ValueError, TypeError, RecursionError, zlib.error):
            logger.warning("dropped a signal of %d characters that is none of ours", len(text))
            return
        if signal.number:
            work = self._reply(signal.topic, signal.facts, signal.number)
            self._tasks.start(work, name=signal.topic)
            return
        for handler in self._handlers.get(signal.topic, ()):
            _call(handler, signal.facts)

    def sweep(self) -> None:
        """Have every part look again at what a lost signal would have told."""
        for handler in self._sweepers:
            _call(handler)

    def _take_reply(self, sender: str, number: str, part: Sequence[Any]) -> None:
        """Take a part of an answer: its position, how many there are, and its text."""
        if (replies := self._replies.get(number)) is None:
            return
        position, count, text = part
        parts = self._parts.setdefault((number, sender), [])
        if position != len(parts):
            return  # one was lost: the question has no answer
        parts.append(text)
        if len(parts) == count:
            replies[sender] = json.loads(zlib.decompress(b64decode("".join(parts))))
            self._came.set()

    async def _reply(self, topic: str, facts: Facts, number: str) -> None:
        answerer = self._answerers.get(topic)
        try:
            answer = {} if answerer is None else await answerer(facts)
        except Exception:
            logger.exception("could not answer %s", topic)
            answer = _FAILED
        packed = b64encode(zlib.compress(json.dumps(answer).encode())).decode()
        parts = [packed[at : at + PART_CHARACTERS] for at in range(0, len(packed), PART_CHARACTERS)]
        for position, part in enumerate(parts):
            self._put([self.name, _REPLY, [position, len(parts), part], number])

    def _put(self, message: Sequence[Any]) -> bool:
        text = json.dumps(message, separators=(",", ":"))
        if len(text) > MOST_BYTES:
            logger.debug("a signal is too long: %s", message[1])
            return False
        self.transmit(text)
        return True


def _parse(text: str) -> _Signal:
    """Read a text of the channel.

    Raises:
        ValueError, TypeError: no member sent it.
    """
    sender, topic, facts, *more = json.loads(text)
    number = more[0] if more else ""
    kind = list if topic == _REPLY else dict
    named = all(isinstance(each, str) for each in (sender, topic, number))
    if len(more) > 1 or not named or not isinstance(facts, kind):
        raise ValueError("not a signal")
    if topic != _REPLY:
        Topic(topic)
    return _Signal(sender, topic, facts, number)


def _call(handler: Callable[..., None], *args: Any) -> None:
    """Call a handler; one that fails must not keep signals from the others."""
    try:
        handler(*args)
    except LookupError as error:
        logger.warning("dropped a signal without %s", error)
    except Exception:
        logger.exception("a signal could not be taken")
