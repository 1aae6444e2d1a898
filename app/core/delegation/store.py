"""Port for delegations: their rows, and the commit that begins one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.delegation.types import Delegation, DelegationLimits, NewDelegation


@dataclass(frozen=True, slots=True)
class Begun:
    """A delegation that was begun, or why it was not."""

    delegation: Delegation | None
    limit: str = ""
    """The name of the limit that was reached; empty if none was."""
    is_first: bool = False
    """Whether the limit was not yet told in this tree."""


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

    async def told(self, delegations: Sequence[int]) -> None:
        """Record that the agent that asked knows these answers."""
        ...
