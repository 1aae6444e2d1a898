"""Computes the patches for an open page, as rows arrive and as text is written; pure.

A patch replaces the element with its id, else it is put into its home, before the element that it
names or at the end; without HTML it removes the element. What a page does not show is not patched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.core.feed import Unfinished
from app.model.types import Entry
from app.server.page.view.blocks import Block, Turn
from app.server.page.view.render import Renderer
from app.server.page.view.steps import calls_of
from app.server.page.view.thread import Fold


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
            if isinstance(block, Turn):
                self._note_within(block.place, block.body)
            for call in calls_of(block):
                if call.inside:
                    self._note_within(call.place, call.inside)

    def _note_within(self, home: str, blocks: Sequence[Block]) -> None:
        parted = self._renderer.split(blocks)
        self._hidden[home] = {block.id for block in parted.earlier}
        self._known[home] = len(blocks)
        self._note(parted.shown)
