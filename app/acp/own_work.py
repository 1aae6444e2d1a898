"""Keeps what an agent begins by itself until a turn takes it, and notices when it has ended.

An agent says in its own way that it rests; one that does not has ended when it is silent for a
moment, with no call and no question open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final, TypeGuard

from app.model.updates import (
    BridgeUpdate,
    FileUpdate,
    PlanUpdate,
    TextUpdate,
    ThoughtUpdate,
    ToolUpdate,
    UsageUpdate,
)

KEPT_UPDATES: Final = 10_000
KEPT_CHARACTERS: Final = 256 * 1024
"""What is kept until a turn takes it: a slot may take a while to be free."""
QUIET_SECONDS: Final = 2.0
"""An agent that says nothing for so long, with nothing open, has ended what it began."""
SIGNED_SECONDS: Final = 0.25
"""How long one is heard that has said that it rests, or what all of it cost: several things say so
one after another."""
_BEGINNINGS: Final = (TextUpdate, ThoughtUpdate, FileUpdate, ToolUpdate, PlanUpdate)
_OVER: Final = frozenset({"completed", "failed"})


class OwnWork:
    """What one agent does without a prompt."""

    def __init__(self) -> None:
        self._kept: list[BridgeUpdate] = []
        self._characters = 0
        self._calls: set[str] = set()
        self._questions = 0
        self._signed = False
        self._stirred = asyncio.Event()

    @property
    def is_kept(self) -> bool:
        """Whether something is kept."""
        return bool(self._kept)

    def keep(self, update: BridgeUpdate) -> bool:
        """Keep an update; False if it begins nothing, or too much is kept already."""
        is_full = len(self._kept) >= KEPT_UPDATES or self._characters > KEPT_CHARACTERS
        if is_full or not (self._kept or isinstance(update, _BEGINNINGS)):
            return False
        self._kept.append(update)
        self._characters += len(update.text) if is_words(update) else len(str(update))
        return True

    def take(self) -> list[BridgeUpdate]:
        """Return what is kept, texts joined, and keep it no more."""
        kept, self._kept, self._characters = self._kept, [], 0
        return list(_join(kept))

    def begin(self) -> None:
        """Watch for the end of what the agent does from now on."""
        self._calls.clear()
        self._signed = False
        self.stir()

    def follow(self, update: BridgeUpdate) -> None:
        """Note what an update opens, ends or says of the end."""
        if isinstance(update, ToolUpdate):
            if update.status in _OVER:
                self._calls.discard(update.call)
            elif update.status is not None:
                self._calls.add(update.call)
        if isinstance(update, UsageUpdate) and update.cost is not None:
            self.sign_off()
        elif isinstance(update, _BEGINNINGS):
            self.stir()

    def stir(self) -> None:
        """Note that the agent is at work."""
        self._stirred.set()

    def sign_off(self) -> None:
        """Note that the agent says that it rests; what it begins after that is another turn's."""
        self._signed = not (self._calls or self._questions)
        self._stirred.set()

    def ask(self, change: int) -> None:
        """Count the questions that are open."""
        self._questions += change
        self.stir()

    async def ended(self) -> None:
        """Wait until the agent has ended what it began."""
        while not self._signed:
            self._stirred.clear()
            is_open = bool(self._calls or self._questions)
            try:
                async with asyncio.timeout(None if is_open else QUIET_SECONDS):
                    await self._stirred.wait()
            except TimeoutError:
                return
        await asyncio.sleep(SIGNED_SECONDS)


def is_words(update: BridgeUpdate) -> TypeGuard[TextUpdate | ThoughtUpdate]:
    """Tell whether an update is a piece of the agent's own words, which are joined."""
    return isinstance(update, TextUpdate) or (
        isinstance(update, ThoughtUpdate) and update.parent is None
    )


def _join(updates: Iterable[BridgeUpdate]) -> Iterator[BridgeUpdate]:
    """Join pieces of text that follow each other."""
    for kind, group in groupby(updates, lambda each: type(each) if is_words(each) else None):
        pieces = list(group)
        if kind is None:
            yield from pieces
        else:
            yield kind("".join(each.text for each in pieces if is_words(each)))
