"""Port for trees of delegated turns: what was asked where, as people see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost
from app.model.types import Entry

BranchState = Literal["queued", "working", "waiting", "done", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Branch:
    """One delegated turn in its tree."""

    id: int
    """The number of the delegation."""
    agent: str
    task: str
    state: BranchState
    session: int
    turn: int
    """Its turn; the one that goes on with it if it was parked and answered."""
    place: PlaceKey
    """Where its agent works for the one that asked."""
    caller_agent: str
    caller_session: int
    caller_turn: int | None
    """The turn that asked; None if a person's command did."""
    root: SessionKey
    """The conversation of people in which it all began."""
    root_place: PlaceKey
    root_session: int
    root_turn: int | None
    person: str
    """The name of the person for whom all of it is done."""
    depth: int = 1
    kind: str = "message"
    created_at: float = 0.0
    ended_at: float | None = None
    root_end: Literal["", "done", "failed", "stopped"] = ""
    """How the turn ended where it all began; empty while it goes on."""

    @property
    def is_over(self) -> bool:
        """Whether its agent is done with it."""
        return self.state in {"done", "failed", "stopped"}

    @property
    def seconds(self) -> float:
        """How long it took; 0 while it goes on."""
        return self.ended_at - self.created_at if self.ended_at else 0.0


class DelegationTree(Protocol):
    """Trees of delegated turns."""

    def under(self, turn: int) -> Sequence[Branch]:
        """List what a turn led to, oldest first, each followed by what it led to itself."""
        ...

    def of_turn(self, turn: int) -> Branch | None:
        """Read the delegation that a turn belongs to, also as its continuation."""
        ...

    def of_session(self, session: int) -> Branch | None:
        """Read the last delegation that a session works on, or did."""
        ...

    def above(self, session: int) -> Sequence[PlaceKey]:
        """List the places in which the work of a session is shown too: up to where it began."""
        ...

    def words(self, turn: int) -> str:
        """Read what a turn that is over ended with: its last words, or why it failed."""
        ...

    async def unshown(self) -> Sequence[Branch]:
        """List what ended and was not shown to people yet."""
        ...

    async def show(
        self, delegation: int, posts: Sequence[NewPost], entries: Sequence[Entry]
    ) -> Sequence[int]:
        """Tell people the end of a delegation, once; returns the posts to send."""
        ...
