"""Joins what the sub-agents of one turn say, each for itself: they speak at the same time.

Nothing leaves before the vault has checked it, also across two rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from app.model.types import Entry, TurnRef
from app.vault import GrowingText, Vault

T = TypeVar("T")

ASIDE_CHARACTERS = 8 * 1024
"""Longer texts are searched for secrets in a thread: made for that, one takes milliseconds."""


@dataclass(slots=True)
class _Speech:
    text: GrowingText
    pieces: list[str] = field(default_factory=list)


class InnerWords:
    """The words of each sub-agent that are not written yet."""

    def __init__(self, vault: Vault, ref: TurnRef) -> None:
        self._vault = vault
        self._ref = ref
        self._speeches: dict[str, _Speech] = {}
        self.size = 0
        """How many characters wait."""

    def add(self, speaker: str, text: str) -> None:
        """Take what one says."""
        speech = self._speeches.setdefault(speaker, _Speech(GrowingText(self._vault)))
        speech.pieces.append(text)
        self.size += len(text)

    def has_words_of(self, speaker: str | None) -> bool:
        """Tell whether words of one wait."""
        return speaker in self._speeches and bool(self._speeches[speaker].pieces)

    async def take(self, *, final: bool) -> list[Entry]:
        """Return what may be written now, a row for each; with `final`, all of it."""
        entries = []
        for speaker, speech in list(self._speeches.items()):
            if not speech.pieces and not (final and speech.text.waiting):
                continue
            taken, joined = len(speech.pieces), "".join(speech.pieces)
            split = partial(speech.text.split, joined, final=final)
            safe, waiting = await run_aside(split, len(joined))
            speech.text.take(safe, waiting, final=final)
            # Others may have come meanwhile.
            del speech.pieces[:taken]
            self.size -= len(joined)
            if safe:
                data = {"parent": self._vault.redact(speaker)}
                entries.append(Entry("thought", safe, "", data, self._ref.session, self._ref.turn))
        return entries


async def run_aside(work: Callable[[], T], characters: int) -> T:
    """Search for secrets; in a thread if that is long, since all others wait for the event loop."""
    return work() if characters <= ASIDE_CHARACTERS else await asyncio.to_thread(work)
