"""Remembers what an agent does between its turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from app.model.background import Woken, Work
from app.model.updates import BridgeUpdate


@dataclass
class Bystander:
    """The part of a session listener that turns do not need."""

    woken: list[Woken] = field(default_factory=list, kw_only=True)
    late: list[tuple[int, BridgeUpdate]] = field(default_factory=list, kw_only=True)
    unshown: Counter[str] = field(default_factory=Counter, kw_only=True)
    work: list[tuple[Work, ...]] = field(default_factory=list, kw_only=True)
    roused: asyncio.Event = field(default_factory=asyncio.Event, kw_only=True)

    def on_woken(self, woken: Woken) -> None:
        self.woken.append(woken)
        self.roused.set()

    async def on_late(self, turn: int, update: BridgeUpdate) -> None:
        self.late.append((turn, update))
        self.roused.set()

    def on_unshown(self, what: str) -> None:
        self.unshown[what] += 1

    def on_work(self, work: tuple[Work, ...]) -> None:
        self.work.append(work)
        self.roused.set()
