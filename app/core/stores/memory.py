"""Port for what agents remember: notes on their way into a file, and the search over the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.model.types import TurnRef
from app.model.updates import AskRequest


@dataclass(frozen=True, slots=True)
class KeptNote:
    """A note that belongs into its agent's file."""

    id: int
    agent: str
    session: int
    text: str
    at: float


class MemoryStore(Protocol):
    """Notes, and the search over daily logs. Nothing here crosses agents."""

    async def propose(
        self, agent: str, ref: TurnRef, text: str, request: AskRequest, *, deadline: float
    ) -> Sequence[int]:
        """Store a note together with the ask whether to keep it; return the posts to send.

        What is asked already is not asked again.
        """
        ...

    async def keep(self, agent: str, session: int, text: str) -> None:
        """Store a note that needs no answer."""
        ...

    async def kept(self) -> Sequence[KeptNote]:
        """List the notes that are to be written into files."""
        ...

    async def written(self, note: int) -> None:
        """Forget a note that is in its file."""
        ...

    async def versions(self, agent: str) -> Mapping[str, str]:
        """Tell which version of each daily log the search knows."""
        ...

    async def index(
        self, agent: str, day: str, version: str, entries: Sequence[tuple[str, str]]
    ) -> None:
        """Let the search know a daily log, as pairs of id and text; without any, it is gone."""
        ...

    async def search(
        self, agent: str, words: Sequence[str], *, every: bool, limit: int
    ) -> Sequence[tuple[str, str]]:
        """Find entries with any or with every word, best first, as pairs of day and id."""
        ...

    async def forget(self, agent: str) -> None:
        """Forget all notes and the index of an agent that was removed."""
        ...
