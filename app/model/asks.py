"""Holds asks, answers and grants as the store returns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from app.model.keys import PlaceKey
from app.model.types import TurnRef
from app.model.updates import Ask, GrantExtent


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


GrantState = Literal["active", "expired", "ended"]
"""A grant ends when it is taken back, or when its conversation starts over."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a person granted: it counts for all turns of one agent in one place."""

    id: int
    session: int
    agent: str
    place: PlaceKey
    kind: str
    extent: GrantExtent
    subject: str
    """What people saw; a known secret in it is hidden."""
    granted_by: str
    granted_at: float
    expires_at: float
    state: GrantState
    ended_at: float | None = None
    ended_by: str = ""
    """Who took it back."""
    ask: int | None = None
    """The ask whose answer it was."""


@dataclass(frozen=True, slots=True)
class WantedGrants:
    """Which grants are listed; None: all of them."""

    agent: str | None = None
    place: PlaceKey | None = None
    session: int | None = None
    state: GrantState | None = None


GRANT_SECONDS: Final = 30 * 86_400.0
"""How long a grant holds: longer than most work in one thread, shorter than people forget it."""
