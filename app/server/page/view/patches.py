"""Computes the patches for an open page, as rows arrive and as text is written; pure.

A patch replaces the element with its id, else it is appended to its home; without HTML it removes
the element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.feed import Unfinished
from app.core.types import Entry
from app.server.page.view.blocks import Block
from app.server.page.view.render import Renderer
from app.server.page.view.thread import Fold


@dataclass(frozen=True, slots=True)
class Patch:
    """A new version of one element of the page."""

    id: str
    home: str
    html: str


class Patches:
    """Tracks what one page shows of one thread."""

    def __init__(self, fold: Fold, renderer: Renderer) -> None:
        self.fold = fold
        self._renderer = renderer
        self._previews: dict[int, str] = {}

    def rows(self, rows: Sequence[Entry]) -> list[Patch]:
        """Show rows; they replace text that was shown before it had a row."""
        changed = self.fold.add(rows)
        names = {block.id for block in changed}
        turns = dict.fromkeys(row.turn for row in rows if row.turn is not None)
        previews = [self._previews.pop(turn) for turn in turns if turn in self._previews]
        settled = [self._settle(name) for name in previews if name not in names]
        return settled + [self._patch(block) for block in changed]

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

    def _patch(self, block: Block) -> Patch:
        return Patch(block.id, block.home, self._renderer.block(block))
