"""Wakes the followers of a session or a place; the rows are read from the transcript.

A follower that comes late or reconnects therefore sees exactly what one that stayed sees, and so
does one that another member of the installation serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Literal

from app.model.keys import PlaceKey
from app.model.types import Entry
from app.signals import ALONE, Facts, Signals, Topic
from app.store.sessions import SessionStore
from app.store.transcript import TranscriptStore

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
class PlaceNews:
    """What is new in a place; empty means that a state may have changed."""

    rows: tuple[Entry, ...] = ()
    unfinished: tuple[Unfinished, ...] = ()


@dataclass(eq=False, slots=True)
class _Follower:
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    reads: bool = True
    """Whether it shows what an agent is still writing."""
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
        *,
        signals: Signals = ALONE,
    ) -> None:
        """Read rows from the transcript.

        `above` lists the places in which the work of a session is shown too.
        """
        self._transcript = transcript
        self._sessions = sessions
        self._above = above
        self._signals = signals
        self._followers: dict[int | PlaceKey, set[_Follower]] = {}
        self._places: dict[int, tuple[PlaceKey, ...]] = {}
        self._afar: dict[int | PlaceKey, bool] = {}
        """What is followed at other members, and whether that was said since the last sweep."""
        self._told: dict[int, str] = {}
        """The text without a row that other members were told since the last sweep, by turn."""
        self._closed = False
        self.listeners: list[Callable[[int], None]] = []
        """Are told of every session that has news; they must not wait."""
        self.stirs = 0
        """Counts what happened anywhere, so that a read of everything can be skipped."""
        signals.on(Topic.NEWS, lambda facts: self._tell(facts["session"]))
        signals.on(Topic.PLACE, lambda facts: self._tell_place(PlaceKey(*facts["place"])))
        signals.on(Topic.TEXT, lambda facts: self._show(Unfinished(**facts)))
        signals.on(Topic.FOLLOWED, self._note_follower)
        signals.on_sweep(self._look_again)

    def close(self) -> None:
        """Release every follower."""
        self._closed = True
        for followers in self._followers.values():
            for follower in followers:
                follower.wake.set()

    def followed(self, session: int) -> bool:
        """Tell whether a session or its place has followers, here or at another member."""
        return any(True for _ in self._of(session)) or self._is_followed_afar(session)

    def notify(self, session: int) -> None:
        """Say that a session has new rows, or another state."""
        self._tell(session)
        self._signals.send(Topic.NEWS, session=session)

    def notify_place(self, place: PlaceKey) -> None:
        """Say that something was said in a place."""
        self._tell_place(place)
        self._signals.send(Topic.PLACE, place=[place.service, place.name])

    def show(self, unfinished: Unfinished) -> None:
        """Show text that has no row yet."""
        self._show(unfinished)
        is_new = self._told.get(unfinished.turn) != unfinished.text
        if is_new and self._is_followed_afar(unfinished.session):
            self._told[unfinished.turn] = unfinished.text
            self._signals.send(Topic.TEXT, **asdict(unfinished))

    def _tell(self, session: int) -> None:
        self.stirs += 1
        for follower in self._of(session):
            follower.wake.set()
        for listener in self.listeners:
            listener(session)

    def _tell_place(self, place: PlaceKey) -> None:
        self.stirs += 1
        for follower in self._followers.get(place, ()):
            follower.wake.set()

    def _show(self, unfinished: Unfinished) -> None:
        for follower in self._of(unfinished.session):
            follower.unfinished[unfinished.turn] = unfinished
            follower.wake.set()

    def _is_followed_afar(self, session: int) -> bool:
        return bool(self._afar) and not self._afar.keys().isdisjoint(
            (session, *self._places_of(session))
        )

    def _note_follower(self, facts: Facts) -> None:
        key = facts["key"]
        self._afar[key if isinstance(key, int) else PlaceKey(*key)] = True

    def _look_again(self) -> None:
        """Wake every follower, and tell the other members what is followed here."""
        self._afar = {key: False for key, is_new in self._afar.items() if is_new}
        self._told.clear()
        self.stirs += 1
        if not self._followers and not self._afar:
            self._places.clear()
        for key, followers in self._followers.items():
            if any(follower.reads for follower in followers):
                self._announce(key)
            for follower in followers:
                follower.wake.set()

    def _announce(self, key: int | PlaceKey) -> None:
        said = key if isinstance(key, int) else [key.service, key.name]
        self._signals.send(Topic.FOLLOWED, key=said)

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

    async def news(self, place: PlaceKey, *, after: int, idle: float) -> AsyncIterator[PlaceNews]:
        """Yield what is new in a place after a number, whenever something is or may be.

        What agents do for others is shown in the place where it began, too.
        """
        with self._follower(place) as follower:
            while not self._closed:
                follower.wake.clear()
                rows = await self._transcript.read_tree(place, after=after, limit=ROWS_AT_ONCE)
                after = rows[-1].id if rows else after
                follower.replaced_by(rows)
                yield PlaceNews(tuple(rows), follower.take_unfinished() if not rows else ())
                if not rows:
                    await follower.wait(idle)

    @contextmanager
    def watching(self, *sessions: int) -> Iterator[asyncio.Event]:
        """Set an event whenever one of these sessions has new rows, or another state."""
        follower = _Follower(reads=False)
        with ExitStack() as stack:
            for session in sessions:
                stack.enter_context(self._follower(session, follower))
            yield follower.wake

    def _of(self, session: int) -> Iterator[_Follower]:
        if not self._followers:
            return
        yield from self._followers.get(session, ())
        for place in self._places_of(session):
            yield from self._followers.get(place, ())

    def _places_of(self, session: int) -> tuple[PlaceKey, ...]:
        """List the places in which a session is shown."""
        if session not in self._places:
            known = self._sessions.session(session)
            if known is None:
                return ()
            self._places[session] = (known.place, *self._above(session))
        return self._places[session]

    @contextmanager
    def _follower(
        self, key: int | PlaceKey, follower: _Follower | None = None
    ) -> Iterator[_Follower]:
        follower = follower or _Follower()
        if follower.reads:
            self._announce(key)
        self._followers.setdefault(key, set()).add(follower)
        try:
            yield follower
        finally:
            followers = self._followers[key]
            followers.discard(follower)
            if not followers:
                del self._followers[key]
            if not self._followers and not self._afar:
                self._places.clear()
