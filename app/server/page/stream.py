"""Streams updates to an open page: blocks as rows arrive, text as it is written, state changes.

Rows carry their number, so that a page that reconnects continues where it was. Text without a row
is sent without a number, and the page removes it when the stream breaks. A patch replaces the
element with its id, else it is put into its home, before the element that it names or at the end;
without HTML it removes the element. What a page does not show is not patched.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import orjson

from app.core.feed import Unfinished
from app.core.runtime import Runtime
from app.model.conversations import path_of
from app.model.keys import PlaceKey
from app.model.types import Entry
from app.server.event_stream import QUIET, event
from app.server.page import queries
from app.server.page.view import render
from app.server.page.view.blocks import Block, TurnBlock
from app.server.page.view.render import Renderer
from app.server.page.view.roster import PageRoster
from app.server.page.view.steps import STEPS, calls_of
from app.server.page.view.thread import Fold

LOOK_SECONDS = 2.0
"""How often a page checks the other threads, if anything happened anywhere; its own at once."""
QUIET_LOOKS = 7
"""Checks without news after which a stream sends a keep-alive: below the timeouts of proxies."""
SETTLE_SECONDS = 0.1
"""How long a message takes to become a running turn: until then it would flash up as waiting."""
ATTEMPTS = 3
"""How often panels are read again because a state changed meanwhile."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A new version of one element of the page."""

    id: str
    home: str
    html: str
    before: str = ""
    away: tuple[str, ...] | None = None
    """The elements that this one replaces at the beginning of its home."""


class Patches:
    """Tracks what one page shows of one thread."""

    def __init__(self, fold: Fold, renderer: Renderer) -> None:
        self.fold = fold
        self._renderer = renderer
        self._previews: dict[int, str] = {}
        self._hidden: dict[str, set[str]] = {}
        self._known: dict[str, int] = {}
        self._note(fold.blocks)

    def rows(self, rows: Sequence[Entry]) -> list[Patch]:
        """Show rows; they replace text that was shown before it had a row."""
        changed = [block for block in self.fold.add(rows) if not self._is_inside_hidden(block)]
        trims: list[Patch] = []
        settled_otherwise: set[str] = set()
        for home in dict.fromkeys(block.home for block in changed):
            made, names = self._trim(home)
            trims += made
            settled_otherwise |= names
        changed = [block for block in changed if block.id not in settled_otherwise]
        names = {block.id for block in changed}
        turns = dict.fromkeys(row.turn for row in rows if row.turn is not None)
        previews = [self._previews.pop(turn) for turn in turns if turn in self._previews]
        settled = [self._settle(name) for name in previews if name not in names]
        self._note(changed)
        return settled + [self._patch(block) for block in changed] + trims

    def unfinished(self, news: Sequence[Unfinished]) -> list[Patch]:
        """Show text that has no row yet."""
        made = []
        for each in news:
            if (block := self.fold.preview(each)) is not None:
                self._previews[each.turn] = block.id
                made.append(self._patch(block))
        return made

    def _settle(self, name: str) -> Patch:
        block = self.fold.find(name)
        return self._patch(block) if block is not None else Patch(name, "", "")

    def _patch(self, block: Block, before: str = "") -> Patch:
        return Patch(block.id, block.home, self._renderer.block(block), before)

    def _trim(self, home: str) -> tuple[list[Patch], set[str]]:
        """Put earlier steps away, and show again what is none any more.

        Also returns the blocks that need no patch of their own.
        """
        blocks = self.fold.within(home)
        if blocks is None:
            return [], set()
        parted = self._renderer.split(blocks)
        before, now = self._hidden.get(home, set()), {block.id for block in parted.earlier}
        came = {block.id for block in blocks[self._known.get(home, 0) :]}
        self._hidden[home], self._known[home] = now, len(blocks)
        if before == now:
            return [], now
        back = before - now
        places = zip(parted.shown, [*(each.id for each in parted.shown[1:]), ""], strict=True)
        shown = [self._patch(block, follows) for block, follows in places if block.id in back]
        self._note(block for block in parted.shown if block.id in back)
        gone = tuple(name for name in now - before if name not in came)
        line = self._renderer.earlier(home, parted)
        return [*reversed(shown), Patch(f"{home}-earlier", home, line, away=gone)], (
            (before & now) | (now & came) | back
        )

    def _is_inside_hidden(self, block: Block) -> bool:
        up = self.fold.around(block)
        while up is not None:
            if up.id in self._hidden.get(up.home, ()):
                return True
            up = self.fold.around(up)
        return False

    def _note(self, blocks: Iterable[Block]) -> None:
        """Note what a page shows of blocks that are rendered whole."""
        for block in blocks:
            if isinstance(block, TurnBlock):
                self._note_within(block.place, block.body)
            for call in calls_of(block):
                if call.inside:
                    self._note_within(call.place, call.inside)

    def _note_within(self, home: str, blocks: Sequence[Block]) -> None:
        parted = self._renderer.split(blocks)
        self._hidden[home] = {block.id for block in parted.earlier}
        self._known[home] = len(blocks)
        self._note(parted.shown)


@dataclass
class Stream:
    """The stream of one open page, and what it has sent."""

    runtime: Runtime
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
        """Yield everything after a row number, then all news, until the page is closed.

        What is long is rendered in a thread.
        """
        yield b"retry: 1000\n\n" + event("now", orjson.dumps(self.runtime.clock.now()))
        fold = Fold(lambda _session: "")
        if self.key is not None:
            reading = await queries.read_thread(
                self.runtime, self.key, begin=self.begin, until=after
            )
            fold = reading.fold
        where = path_of(self.key) if self.key is not None else ""
        roster = queries.roster_of(self.runtime)
        patches = Patches(fold, Renderer(roster, where, begin=self.begin, steps=self.steps))
        place = self.key or queries.NEW_THREAD
        async for news in self.runtime.feed.news(place, after=after, idle=LOOK_SECONDS):
            if not self.welcome():
                return
            if news.unfinished:
                if live := await asyncio.to_thread(patches.unfinished, news.unfinished):
                    yield event("live", orjson.dumps(live))
                continue
            if news.rows:
                blocks = await asyncio.to_thread(patches.rows, news.rows)
                yield event("blocks", orjson.dumps(blocks), number=news.rows[-1].id)
            if any(row.kind == "message" for row in news.rows):
                await self.runtime.clock.sleep(SETTLE_SECONDS)
            panels = await self._read(fold, queries.roster_of(self.runtime))
            fresh = {name: html for name, html in panels.items() if self._panels.get(name) != html}
            self._panels.update(fresh)
            self._quiet = 0 if fresh else self._quiet + 1
            if fresh:
                yield event("state", orjson.dumps(fresh))
            elif self._quiet % QUIET_LOOKS == 0:
                yield QUIET

    async def _read(self, fold: Fold, roster: PageRoster) -> dict[str, str]:
        """Render the panels; the list says of its own thread what the head says of it."""
        made: dict[str, str] = {}
        for _ in range(ATTEMPTS):
            states = self._states()
            if self.key is None:
                made = render.start_panels(roster, self.picked)
            else:
                place = await queries.place_of(self.runtime, roster, self.key, fold)
                made = render.place_panels(place, roster) if place is not None else {}
            made["paused"] = render.paused_panel(queries.notices_of(self.runtime, self.key), roster)
            now, stirs = self.runtime.clock.monotonic(), self.runtime.feed.stirs
            due = stirs != self._stirs and now >= self._next_list
            if due or made.get("state") != self._panels.get("state"):
                listed = await queries.threads_of(
                    self.runtime, roster, self.key, self.threads, self.more, grouped=self.grouped
                )
                made["threads"] = render.threads_panel(listed, roster)
                self._stirs, self._next_list = stirs, now + LOOK_SECONDS
            if states == self._states():
                break
        return made

    def _states(self) -> list[str]:
        if self.key is None:
            return []
        return [each.state for each in self.runtime.stores.sessions.in_place(self.key)]
