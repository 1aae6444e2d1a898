"""Port for grants: what people let an agent do in a conversation without being asked each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.model.keys import PlaceKey
from app.model.updates import GrantExtent

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


class GrantStore(Protocol):
    """Grants; an answer writes one together with itself."""

    def find(self, session: int, digests: Sequence[str]) -> Grant | None:
        """Find a grant that holds now for one of these digests."""
        ...

    async def list(self, wanted: WantedGrants, *, after: int, limit: int) -> Sequence[Grant]:
        """List grants, oldest first."""
        ...

    async def end(self, grant: int, by: str) -> Grant | None:
        """Take a grant back; None if it does not hold any more.

        Raises:
            NotFound: there is no such grant.
        """
        ...
