"""Wakes the followers of a session or a place; the rows are read from the transcript.

A follower that comes late or reconnects therefore sees exactly what one that stayed sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from app.core.keys import PlaceKey
from app.core.stores.sessions import SessionStore, TranscriptStore
from app.core.types import Entry

ROWS_AT_ONCE = 200
"""Rows per read while following: a screen or two."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Text that an agent is still writing; its row replaces it."""

    session: int
    turn: int
    kind: Literal["text", "thought"]
    text: str


@dataclass(frozen=True, slots=True)
class News:
    """What is new in a place; empty means that a state may have changed."""

    rows: tuple[Entry, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()


@dataclass(eq=False, slots=True)
class _Follower:
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    unfinished: dict[int, Unfinished] = field(default_factory=dict)

    def replaced_by(self, rows: Sequence[Entry]) -> None:
        """Forget unfinished text of turns that have a row now: the row may include it."""
        for row in rows:
            if row.turn is not None:
                self.unfinished.pop(row.turn, None)

    def take_unfinished(self) -> tuple[Unfinished, ...]:
        taken = tuple(self.unfinished.values())
        self.unfinished.clear()
        return taken

    async def wait(self, seconds: float) -> bool:
        """Wait to be woken; False on timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self.wake.wait()
        except TimeoutError:
            return False
        return True


class Feed:
    """The followers of sessions and places."""

    def __init__(
        self,
        transcript: TranscriptStore,
        sessions: SessionStore,
        above: Callable[[int], Sequence[PlaceKey]] = lambda _session: (),
    ) -> None:
        """Read rows from the transcript.

        `above` lists the places in which the work of a session is shown too.
        """
        self._transcript = transcript
        self._sessions = sessions
        self._above = above
        self._followers: dict[int | PlaceKey, set[_Follower]] = {}
        self._places: dict[int, tuple[PlaceKey, ...]] = {}
        self._closed = False
        self.listeners: list[Callable[[int], None]] = []
        """Are told of every session that has news; they must not wait."""
        self.stirs = 0
        """Counts what happened anywhere, so that a read of everything can be skipped."""

    def close(self) -> None:
        """Release every follower."""
        self._closed = True
        for followers in self._followers.values():
            for follower in followers:
                follower.wake.set()

    def followed(self, session: int) -> bool:
        """Tell whether a session or its place has followers."""
        return bool(self._followers) and any(True for _ in self._of(session))

    def notify(self, session: int) -> None:
        """Say that a session has new rows, or another state."""
        self.stirs += 1
        for follower in self._of(session):
            follower.wake.set()
        for listener in self.listeners:
            listener(session)

    def notify_place(self, place: PlaceKey) -> None:
        """Say that something was said in a place."""
        self.stirs += 1
        for follower in self._followers.get(place, ()):
            follower.wake.set()

    def show(self, unfinished: Unfinished) -> None:
        """Show text that has no row yet."""
        for follower in self._of(unfinished.session):
            follower.unfinished[unfinished.turn] = unfinished
            follower.wake.set()

    async def follow(
        self, session: int, *, after: int, idle: float
    ) -> AsyncIterator[Entry | Unfinished | None]:
        """Yield the rows of a session after a number and all that follow; None when idle."""
        with self._follower(session) as follower:
            while not self._closed:
                follower.wake.clear()
                rows = await self._transcript.read(session, after=after, limit=ROWS_AT_ONCE)
                for row in rows:
                    after = row.id
                    yield row
                if rows:
                    follower.replaced_by(rows)
                    continue
                for unfinished in follower.take_unfinished():
                    yield unfinished
                if not await follower.wait(idle):
                    yield None

    async def news(self, place: PlaceKey, *, after: int, idle: float) -> AsyncIterator[News]:
        """Yield what is new in a place after a number, whenever something is or may be.

        What agents do for others is shown in the place where it began, too.
        """
        with self._follower(place) as follower:
            while not self._closed:
                follower.wake.clear()
                rows = await self._transcript.read_tree(place, after=after, limit=ROWS_AT_ONCE)
                after = rows[-1].id if rows else after
                follower.replaced_by(rows)
                yield News(tuple(rows), follower.take_unfinished() if not rows else ())
                if not rows:
                    await follower.wait(idle)

    @contextmanager
    def watching(self, *sessions: int) -> Iterator[asyncio.Event]:
        """Set an event whenever one of these sessions has new rows, or another state."""
        follower = _Follower()
        with ExitStack() as stack:
            for session in sessions:
                stack.enter_context(self._follower(session, follower))
            yield follower.wake

    def _of(self, session: int) -> Iterator[_Follower]:
        if not self._followers:
            return
        yield from self._followers.get(session, ())
        if session not in self._places:
            known = self._sessions.session(session)
            if known is None:
                return
            self._places[session] = (known.place, *self._above(session))
        for place in self._places[session]:
            yield from self._followers.get(place, ())

    @contextmanager
    def _follower(
        self, key: int | PlaceKey, follower: _Follower | None = None
    ) -> Iterator[_Follower]:
        follower = follower or _Follower()
        self._followers.setdefault(key, set()).add(follower)
        try:
            yield follower
        finally:
            followers = self._followers[key]
            followers.discard(follower)
            if not followers:
                del self._followers[key]
            if not self._followers:
                self._places.clear()
