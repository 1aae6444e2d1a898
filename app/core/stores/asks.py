"""Port for asks: stored with the post that shows them, answered once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.model.filters import EVERYTHING, ListFilter
from app.model.keys import SessionKey
from app.model.types import TurnRef
from app.model.updates import Ask, AskRequest


@dataclass(frozen=True, slots=True)
class OpenedAsk:
    """What became of a request: an ask to wait for, or one that was answered before."""

    ask: Ask
    posts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TakenAnswer:
    """What followed from answers, or from the lack of them."""

    posts: tuple[int, ...] = ()
    turns: tuple[TurnRef, ...] = ()
    """Turns that can run now."""
    asks: tuple[int, ...] = ()
    """Asks that are closed now."""
    sessions: tuple[int, ...] = ()


class AskStore(Protocol):
    """Asks: one row each, answered once."""

    async def open(self, request: AskRequest, ref: TurnRef, *, deadline: float) -> OpenedAsk | None:
        """Store an ask and its post; None if its turn is over.

        An ask from before a park is found by its arguments: if it was answered meanwhile, this
        uses up the answer; if it is still open, it belongs to this turn from now on.
        """
        ...

    def is_known(self, request: AskRequest, ref: TurnRef) -> bool:
        """Tell whether opening a request would find an ask that there is."""
        ...

    async def leave(self, ask: int) -> Ask:
        """Stop waiting for the answer to a tool's question; returns it as it is.

        An answer counts as used; without one, the next call that asks the same finds it.
        """
        ...

    async def answer(
        self, ask: int, answer: str, by: str, *, speaker: str = ""
    ) -> TakenAnswer | None:
        """Answer an ask, with an option or in words; None if it can no longer be answered.

        If its turn was parked, a turn begins that continues the work; an accepted offer begins one
        as well, for the person with the platform's id `speaker`, and so does the answer to a
        tool's question whose turn is over.
        """
        ...

    async def expire(self) -> TakenAnswer:
        """Close every ask whose time is over, and end the turns that waited for nothing else."""
        ...

    def ask(self, ask: int) -> Ask | None:
        """Read one ask."""
        ...

    def surface(self, ask: int) -> SessionKey | None:
        """Tell in which conversation an ask is shown."""
        ...

    def open_in(self, session: int) -> Sequence[Ask]:
        """List the asks that can be answered where a session is, oldest first.

        Those of agents that work for it are among them.
        """
        ...

    def late(self, turn: int) -> Sequence[Ask]:
        """List the answers that started a turn and that its agent does not know yet."""
        ...

    def due(self) -> float | None:
        """Tell when the next ask expires or answers itself, in seconds since 1970."""
        ...

    def resumable(self) -> Sequence[int]:
        """List the asks that are due to answer themselves."""
        ...

    async def asks(self, only: ListFilter = EVERYTHING, *, after: int, limit: int) -> Sequence[Ask]:
        """List asks."""
        ...
