"""Streams updates to an open page: blocks as rows arrive, text as it is written, state changes.

Rows carry their number, so that a page that reconnects continues where it was. Text without a row
is sent without a number, and the page removes it when the stream breaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import orjson

from app.core.feed import News
from app.model.conversations import path_of
from app.model.keys import PlaceKey
from app.server.page import queries
from app.server.page.view import render
from app.server.page.view.patches import Patches
from app.server.page.view.render import Renderer
from app.server.page.view.steps import STEPS
from app.server.page.view.thread import Fold
from app.server.page.view.views import Cast
from app.server.parts import Parts

LOOK_SECONDS = 2.0
"""How often a page checks the other threads, if anything happened anywhere; its own at once."""
QUIET_LOOKS = 7
"""Checks without news after which a stream sends a keep-alive: below the timeouts of proxies."""
SETTLE_SECONDS = 0.1
"""How long a message takes to become a running turn: until then it would flash up as waiting."""
ATTEMPTS = 3
"""How often panels are read again because a state changed meanwhile."""
NOWHERE = PlaceKey("web", "")
"""A place without messages, for a page without a thread."""


@dataclass
class Stream:
    """The stream of one open page, and what it has sent."""

    parts: Parts
    key: PlaceKey | None
    begin: int
    threads: int
    more: str
    welcome: Callable[[], bool]
    """Returns whether the viewer is still signed in."""
    picked: str = ""
    """The agent that a page without a thread proposes."""
    steps: int = STEPS
    """Steps of a turn that the page shows at first."""
    grouped: queries.Grouping = ""
    _panels: dict[str, str] = field(default_factory=dict)
    _stirs: int = -1
    _next_list: float = 0.0
    _quiet: int = 0

    async def events(self, after: int) -> AsyncIterator[bytes]:
        """Yield everything after a row number, then all news, until the page is closed."""
        yield b"retry: 1000\n\n" + _event("now", self.parts.clock.now())
        cast = queries.cast_of(self.parts)
        fold = Fold(lambda _session: "")
        if self.key is not None:
            reading = await queries.read_thread(self.parts, self.key, begin=self.begin, until=after)
            fold = reading.fold
        where = path_of(self.key) if self.key is not None else ""
        patches = Patches(fold, Renderer(cast, where, begin=self.begin, steps=self.steps))
        place = self.key or NOWHERE
        async for news in self.parts.feed.news(place, after=after, idle=LOOK_SECONDS):
            if not self.welcome():
                return
            for event in await _to_events(news, patches):
                yield event
            if news.unfinished:
                continue
            if any(row.kind == "message" for row in news.rows):
                await self.parts.clock.sleep(SETTLE_SECONDS)
            cast = queries.cast_of(self.parts)
            for event in await self._state(fold, cast):
                yield event

    async def _state(self, fold: Fold, cast: Cast) -> list[bytes]:
        """Return the panels around the thread that changed."""
        made = await self._read(fold, cast)
        fresh = {name: html for name, html in made.items() if self._panels.get(name) != html}
        self._panels.update(fresh)
        self._quiet = 0 if fresh else self._quiet + 1
        if fresh:
            return [_event("state", fresh)]
        return [b": quiet\n\n"] if self._quiet % QUIET_LOOKS == 0 else []

    async def _read(self, fold: Fold, cast: Cast) -> dict[str, str]:
        """Render the panels; the list says of its own thread what the head says of it."""
        for _ in range(ATTEMPTS):
            made: dict[str, str] = {}
            states = self._states()
            if self.key is None:
                made = render.start_panels(cast, self.picked)
            else:
                place = await queries.place_of(self.parts, cast, self.key, fold)
                made = render.place_panels(place, cast) if place is not None else {}
            made["paused"] = render.paused_panel(queries.notices_of(self.parts, self.key), cast)
            now, stirs = self.parts.clock.monotonic(), self.parts.feed.stirs
            due = stirs != self._stirs and now >= self._next_list
            if due or made.get("state") != self._panels.get("state"):
                listed = await queries.threads_of(
                    self.parts,
                    cast,
                    self.key,
                    self.threads,
                    self.more,
                    grouped=self.grouped,
                )
                made["threads"] = render.threads_panel(listed, cast)
                self._stirs, self._next_list = stirs, now + LOOK_SECONDS
            if states == self._states():
                break
        return made

    def _states(self) -> list[str]:
        if self.key is None:
            return []
        return [each.state for each in self.parts.sessions.in_place(self.key)]


async def _to_events(news: News, patches: Patches) -> list[bytes]:
    """Render rows and unfinished text as events, in a thread since long ones take a while."""
    if news.rows:
        made = await asyncio.to_thread(patches.rows, news.rows)
        return [_event("blocks", made, number=news.rows[-1].id)]
    if news.unfinished:
        made = await asyncio.to_thread(patches.unfinished, news.unfinished)
        return [_event("live", made)] if made else []
    return []


def _event(name: str, data: object, *, number: int | None = None) -> bytes:
    begin = f"id: {number}\n" if number is not None else ""
    return f"{begin}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"
