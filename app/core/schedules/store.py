"""Port for schedules: their rows, and the commit that makes a run of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.model.inbound import Delivery
from app.model.keys import PlaceKey, SessionKey
from app.model.schedules import Agreed, NewSchedule, PauseReason, Schedule
from app.model.types import TurnRef
from app.model.updates import AskRequest


class ScheduleStore(Protocol):
    """What agents are asked again and again."""

    def all(self) -> Sequence[Schedule]:
        """List every schedule, in the order in which they were made."""
        ...

    def get(self, schedule: int) -> Schedule | None:
        """Read one schedule."""
        ...

    def made_by(self, origin: str) -> Schedule | None:
        """Read the schedule that a message made."""
        ...

    def due(self, now: float) -> Sequence[Schedule]:
        """List the active schedules whose time has come, the longest due first."""
        ...

    def next_due(self) -> float | None:
        """Tell when the next active schedule is due."""
        ...

    async def add(self, new: NewSchedule, *, most: int) -> Schedule | None:
        """Make a schedule, or return the one of the same origin.

        None if its agent has `most` of them in the place.
        """
        ...

    async def begin(self, schedule: Schedule, next_at: float, delivery: Delivery) -> bool:
        """Store the run that is due and move the due time, in one commit.

        False if another run or a change was first. A schedule whose place is gone ends.
        """
        ...

    async def run(self, delivery: Delivery) -> None:
        """Store a run besides the due times."""
        ...

    async def remove(self, schedule: int) -> None:
        """End a schedule."""
        ...

    async def pause(self, schedule: int, reason: PauseReason) -> None:
        """Pause a schedule."""
        ...

    async def resume(self, schedule: int, due_at: float) -> None:
        """Let a schedule run again from a time on, and forget its failures."""
        ...

    async def tell(self, key: SessionKey, place: PlaceKey, words: str, *, name: str) -> int:
        """Tell a place something about a schedule, once by this name; returns the post to send."""
        ...

    async def propose(self, ref: TurnRef, request: AskRequest, *, deadline: float) -> Sequence[int]:
        """Ask people whether an agent gets a schedule; returns the posts to send.

        What is asked already is not asked again.
        """
        ...

    async def agreed(self) -> Sequence[Agreed]:
        """List the proposals that people agreed to and that are not settled."""
        ...

    async def settled(self, ask: int) -> None:
        """Record that a proposal was made a schedule, or refused."""
        ...
