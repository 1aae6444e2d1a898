"""The port of asks: kept with the post that shows them, answered once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.keys import SessionKey
from app.core.types import TurnRef
from app.core.updates import Ask, AskRequest


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
        """Keep an ask and its post; None if its turn is over.

        One that was asked before a park is found by its arguments: if it was answered meanwhile,
        the answer is used up by this; if it is still open, it is this turn's from now on.
        """
        ...

    async def answer(
        self, ask: int, answer: str, by: str, *, speaker: str = ""
    ) -> TakenAnswer | None:
        """Answer an ask, with an option or in words; None if it cannot be answered any more.

        If its turn was parked, a turn is begun that goes on with the work; an offer that is taken
        begins one as well, for whoever has the platform's id `speaker`.
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
        """List the asks of a session that can be answered, oldest first."""
        ...

    def late(self, turn: int) -> Sequence[Ask]:
        """List the answers that a turn was begun for, and that its agent does not know yet."""
        ...

    def grants(self, session: int) -> Mapping[str, str]:
        """Tell which kinds of calls were allowed for the whole conversation, and by whom."""
        ...

    def due(self) -> float | None:
        """Tell when the next ask expires or answers itself, in seconds since 1970."""
        ...

    def resumable(self) -> Sequence[int]:
        """List the asks that answer themselves by now."""
        ...

    async def asks(self, state: str | None, *, after: int, limit: int) -> Sequence[Ask]:
        """List asks."""
        ...
