"""Holds the waits of turns for answers, and lets each turn show few asks at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from app.model.updates import Ask

SHOWN_AT_ONCE = 3
"""Open asks of one turn; the others follow as these are answered, so that no place is flooded."""

Answer = asyncio.Future[Ask | None]


@dataclass(frozen=True, eq=False, slots=True)
class _Wait:
    """One wait for the answer to an ask."""

    ask: int
    turn: int
    future: Answer

    def end(self, ask: Ask | None) -> None:
        if not self.future.done():
            self.future.set_result(ask)


@dataclass(slots=True)
class _Queue:
    """The requests of one turn: those that are shown, and those that wait to be."""

    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SHOWN_AT_ONCE))
    requests: int = 0
    withdrawn: bool = False


class Waits:
    """The waits of all turns."""

    def __init__(self) -> None:
        self._waiting: list[_Wait] = []
        self._queues: dict[int, _Queue] = {}

    @asynccontextmanager
    async def line_up(self, turn: int) -> AsyncIterator[bool]:
        """Wait until a turn may show one more ask; yields whether the turn still wants that."""
        queue = self._queues.setdefault(turn, _Queue())
        queue.requests += 1
        try:
            async with queue.room:
                yield not queue.withdrawn
        finally:
            queue.requests -= 1
            if not queue.requests and self._queues.get(turn) is queue:
                del self._queues[turn]

    @contextmanager
    def open(self, ask: int, turn: int) -> Iterator[Answer]:
        """Wait for the answer to an ask for as long as the block runs."""
        wait = _Wait(ask, turn, asyncio.get_running_loop().create_future())
        self._waiting.append(wait)
        try:
            yield wait.future
        finally:
            self._waiting.remove(wait)

    def end(self, ask: Ask) -> bool:
        """Wake those who wait for an ask that is closed; tells whether any did."""
        waiting = [wait for wait in self._waiting if wait.ask == ask.id]
        for wait in waiting:
            wait.end(ask if ask.state == "answered" else None)
        return bool(waiting)

    def withdraw(self, turn: int) -> None:
        """Wake every wait of a turn that ends, without an answer."""
        if (queue := self._queues.get(turn)) is not None:
            queue.withdrawn = True
        for wait in self._waiting:
            if wait.turn == turn:
                wait.end(None)

    def asks(self, turn: int | None = None) -> Sequence[int]:
        """List the asks that a turn waits for, or all that are waited for."""
        mine = (wait.ask for wait in self._waiting if turn in {None, wait.turn})
        return list(dict.fromkeys(mine))
