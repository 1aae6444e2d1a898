"""Holds what is paused, as values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, cast

from app.model import wording
from app.model.delegation import SERVICE
from app.model.keys import PlaceKey, SessionKey

Kind = Literal["all", "agent", "place"]


Reason = Literal["operator", "restored"]
"""Who paused: a person, or `restore`: then nothing is read or sent either."""


ALL: Final = "all"


AGENT: Final = "agent:"


PLACE: Final = "place:"


@dataclass(frozen=True, slots=True)
class Suspension:
    """One thing that is paused."""

    scope: str
    """`all`, `agent:<id>` or `place:<place>`; a place includes what is within it."""
    reason: Reason
    since: float

    def split(self) -> tuple[Kind, str]:
        """Return what kind of scope it is, and the id or the name in it."""
        kind, _, name = self.scope.partition(":")
        return cast("Kind", kind), name

    def covers(self, place: PlaceKey, agents: Collection[str]) -> bool:
        """Tell whether turns of some agents in a place wait because of it."""
        kind, name = self.split()
        if kind == "agent":
            return name in agents
        # A turn that agents wait for may begin, so that theirs can end.
        return place.service != SERVICE and (kind == "all" or f"{place}:".startswith(f"{name}:"))


@dataclass(frozen=True, slots=True)
class Pending:
    """What the bridge goes on with once nothing is paused."""

    posts: Sequence[tuple[SessionKey, str]]
    """Where each unsent post goes, and its words."""
    turns: Sequence[tuple[PlaceKey, str, str]]
    """The place, the agent and the state of each turn that runs then."""
    asks: int
    """Open asks."""
    deliveries: int
    """Events that were stored and not read."""
    schedules: int
    """Schedules that are due."""


def describe_pause(paused: Suspension, name_of: Callable[[str], str]) -> str:
    """Say what is paused, since when, and how it goes on; `name_of` names an agent by its id."""
    kind, name = paused.split()
    shown = name_of(name) if kind == "agent" else name
    since = f"{datetime.fromtimestamp(paused.since, UTC):%Y-%m-%d %H:%M} UTC"
    words = wording.RESTORED if paused.reason == "restored" else wording.PAUSED[kind]
    return words.format(name=shown, since=since)
