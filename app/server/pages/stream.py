"""Keeps an open page up to date: blocks as rows come, words as they are written, state as it moves.

Rows carry their number, so that a page that comes back goes on where it was; whatever has no row is
sent without one and is taken back by the page when the stream breaks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import orjson

from app.core.feed import News
from app.core.keys import PlaceKey
from app.server.pages import sight
from app.server.parts import Parts
from app.services.web import render
from app.services.web.patches import Patches
from app.services.web.render import Renderer
from app.services.web.thread import Fold
from app.services.web.views import Cast, path_of

LOOK_SECONDS = 2.0
"""How often a page looks at the other threads, if anything happened anywhere."""
QUIET_LOOKS = 7
"""Looks without news after which a stream says that it lives: below the timeouts of proxies."""
SETTLE_SECONDS = 0.1
"""What a message takes to become a turn that runs: until then it would flash up as waiting."""
NOWHERE = PlaceKey("web", "")
"""A place where nothing is ever said, for a page without a thread."""


@dataclass
class Stream:
    """What one open page has been sent."""

    parts: Parts
    key: PlaceKey | None
    begin: int
    threads: int
    more: str
    welcome: Callable[[], bool]
    """Tells whether whoever watches may still do so."""
    _panels: dict[str, str] = field(default_factory=dict)
    _stirs: int = -1
    _next_list: float = 0.0
    _quiet: int = 0

    async def events(self, after: int) -> AsyncIterator[bytes]:
        """Give everything after a number, and all that follows, for as long as somebody looks."""
        yield b"retry: 1000\n\n"
        cast = sight.cast_of(self.parts)
        fold = Fold(lambda _session: "")
        if self.key is not None:
            reading = await sight.read_thread(self.parts, self.key, begin=self.begin, until=after)
            fold = reading.fold
        where = path_of(self.key) if self.key is not None else ""
        patches = Patches(fold, Renderer(cast, where))
        place = self.key or NOWHERE
        async for news in self.parts.feed.news(place, after=after, idle=LOOK_SECONDS):
            if not self.welcome():
                return
            for event in await _told(news, patches):
                yield event
            if news.unfinished:
                continue
            if any(row.kind == "message" for row in news.rows):
                await self.parts.clock.sleep(SETTLE_SECONDS)
            cast = sight.cast_of(self.parts)
            for event in await self._state(fold, cast):
                yield event

    async def _state(self, fold: Fold, cast: Cast) -> list[bytes]:
        """Say what stands around the thread, where it is not what was said before."""
        made: dict[str, str] = {}
        if self.key is not None:
            place = await sight.place_of(self.parts, cast, self.key, fold)
            made = render.place_panels(place, cast) if place is not None else {}
        now, stirs = self.parts.clock.monotonic(), self.parts.feed.stirs
        if stirs != self._stirs and now >= self._next_list:
            self._stirs, self._next_list = stirs, now + LOOK_SECONDS
            listed = await sight.threads_of(self.parts, cast, self.key, self.threads, self.more)
            made["threads"] = render.threads_panel(listed, cast)
        fresh = {name: html for name, html in made.items() if self._panels.get(name) != html}
        self._panels.update(fresh)
        self._quiet = 0 if fresh else self._quiet + 1
        if fresh:
            return [_event("state", fresh)]
        return [b": quiet\n\n"] if self._quiet % QUIET_LOOKS == 0 else []


async def _told(news: News, patches: Patches) -> list[bytes]:
    """Make events of rows and of text that has no row yet; much of it takes a while to render."""
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
