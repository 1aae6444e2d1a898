"""Dispatches signals to the parts of a member, and collects the answers to what one asks.

Each member hears every text of the others, in order per member; some may be lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final
from uuid import uuid4

from app.core.signals import Answerer, Facts, Handler, Topic
from app.core.tasks import Tasks

logger = logging.getLogger(__name__)

MOST_BYTES = 7_900
"""The longest signal: PostgreSQL takes less than 8000 bytes."""
PART_CHARACTERS = 7_500
"""A part of an answer that is longer."""
LOOK_SECONDS = 1.0
"""How often a member that asks looks which members are left."""
_REPLY: Final = "reply"


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
        self.at_desk = False
        """Whether this member holds the desk; set once, before its work there begins."""

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
            TimeoutError: one that is alive did not answer in time.
        """
        number = uuid4().hex
        replies = self._replies[number] = {}
        try:
            async with asyncio.timeout(seconds):
                if not self._put([self.name, topic, facts, number]):
                    raise TimeoutError("the question is too long")
                while set(await self._members()) - {self.name, *replies}:
                    await self._wait()
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
        """Take a text from the channel."""
        sender, topic, facts, *number = json.loads(text)
        if sender == self.name:
            return
        if topic == _REPLY:
            self._take_reply(sender, number[0], facts)
        elif number:
            self._tasks.start(self._reply(topic, facts, number[0]), name=topic)
        else:
            for handler in self._handlers.get(topic, ()):
                _call(handler, facts)

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
            replies[sender] = _unpack("".join(parts))
            self._came.set()

    async def _reply(self, topic: str, facts: Facts, number: str) -> None:
        answerer = self._answerers.get(topic)
        packed = _pack({} if answerer is None else await answerer(facts))
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


def _pack(facts: Facts) -> str:
    """Write an answer as plain letters, as few as possible."""
    return b64encode(zlib.compress(json.dumps(facts).encode())).decode()


def _unpack(text: str) -> Facts:
    found: Facts = json.loads(zlib.decompress(b64decode(text)))
    return found


def _call(handler: Callable[..., None], *args: Any) -> None:
    """Call a handler; one that fails must not keep signals from the others."""
    try:
        handler(*args)
    except Exception:
        logger.exception("a signal could not be taken")
