"""Port for delegations: their rows, and the commit that begins one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.model.delegation import Answer, Delegation, DelegationLimits, Errand, Limit, NewDelegation
from app.model.keys import PlaceKey


@dataclass(frozen=True, slots=True)
class Begun:
    """A delegation that was begun, or why it was not."""

    delegation: Delegation | None
    limit: Limit = ""
    """The limit that was reached."""
    is_known: bool = False
    """Whether it had begun before: the same call of a turn that was cut off."""
    posts: tuple[int, ...] = ()
    """What is to be sent: the post of its turn, or, once per tree, that a limit was reached."""


class DelegationStore(Protocol):
    """Delegations."""

    async def begin(self, new: NewDelegation, limits: DelegationLimits) -> Begun:
        """Begin a delegation in one commit: place, session, message, turn and row.

        The limits are counted in the same commit.
        """
        ...

    def delegation(self, delegation: int) -> Delegation | None:
        """Read one delegation."""
        ...

    def of_turn(self, turn: int) -> Delegation | None:
        """Read the delegation that caused a turn; None if people caused it."""
        ...

    def by_turn(self, turn: int) -> Sequence[Delegation]:
        """List what a turn asked for, oldest first."""
        ...

    def in_group(self, group: str) -> Sequence[Delegation]:
        """List the delegations that belong together, oldest first."""
        ...

    def begun_in(self, place: PlaceKey) -> Sequence[Delegation]:
        """List what the agents of a place asked for, oldest first."""
        ...

    def errand(self, session: int) -> Errand | None:
        """Read what a session was begun for; None if people began it."""
        ...

    def untold(self, session: int, turn: int) -> Sequence[Delegation]:
        """List what a session asked for and does not know the end of, oldest first.

        Of a turn that was cut off, list all.
        """
        ...

    def answer(self, delegation: Delegation) -> Answer:
        """Read what came of a delegation so far."""
        ...

    async def stop(self, delegations: Sequence[int]) -> Sequence[int]:
        """Stop delegations and all that they led to, in one commit; returns the posts to send."""
        ...

    def due(self, seconds: float) -> float | None:
        """Tell when the first tree with open work has gone on for this long."""
        ...

    async def stop_due(self, seconds: float) -> Sequence[int]:
        """Stop what is open in trees that have gone on for this long, and tell people once.

        Returns the posts to send.
        """
        ...

    async def told(self, delegations: Sequence[int]) -> None:
        """Record that the agent that asked knows these answers."""
        ...
