"""Ports for several bridges on one database: the members, and the jobs of those that run turns.

A member that another one has removed commits nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from app.model.types import Turn

COMMON: Final = "common"
"""The queue of all workers; each also has one by its own name."""
TASK: Final = "serve"
"""What a job asks for: that its session is served."""
Role = Literal["all", "front", "worker"]
"""What a bridge does: a front talks with platforms and people, a worker runs turns."""


@dataclass(frozen=True, slots=True)
class Member:
    """One running bridge."""

    name: str
    epoch: int
    """Tells this start from all others under its name."""
    role: Role
    slots: int
    """How many turns it runs at once; none if it runs none."""
    load: Mapping[str, int]
    """How many it runs now, by agent."""
    beats: int
    """Grows as long as it is there."""
    seen_at: float


@dataclass(frozen=True, slots=True)
class Beat:
    """What a member learns when it says that it is there."""

    members: tuple[Member, ...]
    """All of them, itself included."""
    desk: str
    """The member that has the desk; empty if none has it."""


@dataclass(frozen=True, slots=True)
class HandedOut:
    """What became of the work of a member that is gone."""

    sessions: tuple[int, ...] = ()
    """The sessions whose turns were cut off."""
    posts: tuple[int, ...] = ()
    """The posts to send."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker learns when it wants to serve a session."""

    answer: Literal["granted", "idle", "full", "elsewhere"]
    """Whether it may: not if there is nothing to do, or as many turns run as may run; `elsewhere`
    if the session has another job, which waits for a member or is being done."""
    job: int | None = None
    """The job that this session has now, if granted."""
    has_moved: bool = False
    """Whether another member served the session last."""


class MemberStore(Protocol):
    """The members and their duties."""

    async def join(self, name: str, role: Role, slots: int) -> HandedOut:
        """Become a member; what the last run under this name left is handed out.

        From then on nothing is committed unless this process is still a member.
        """
        ...

    def renew(self) -> bool:
        """Beat without waiting for other commits; False if this process is no member any more.

        Raises:
            StoreUnavailable: that cannot be known now.
        """
        ...

    async def beat(self, load: Mapping[str, int], *, wants_desk: bool) -> Beat:
        """Say that this member is there; take the desk if it is wanted and free."""
        ...

    async def take_over(self, lapsed: Sequence[Member]) -> HandedOut:
        """Remove those of these members that have not beaten since; hand out their work."""
        ...

    async def leave(self) -> HandedOut:
        """Stop being a member, and hand out what is left."""
        ...


class JobStore(Protocol):
    """The jobs: each means that a session has work."""

    async def employ(self, engine: int) -> None:
        """Note the number under which this member fetches jobs."""
        ...

    async def queue(self, session: int) -> None:
        """Have a session served, best by the member that served it last."""
        ...

    async def queue_all(self) -> None:
        """Have every session served that has work and no job."""
        ...

    async def claim(
        self,
        turn: Turn,
        job: int | None,
        load: Mapping[str, int],
        *,
        total: int | None,
        of_agent: int | None,
    ) -> Claim:
        """Begin to serve a session with its next turn; `load` includes it.

        Without a job, the session gets one: of this member, or one that waits for a better one.
        `total` limits the turns of all members, `of_agent` those of the session's agent.
        """
        ...

    async def finish(self, job: int, load: Mapping[str, int]) -> None:
        """End a job; if its session has more work, it is queued again."""
        ...

    async def put_back(self, job: int, seconds: float, load: Mapping[str, int]) -> None:
        """Let a job wait for a while, and then for any member."""
        ...

    async def reclaim(self, known: Collection[int]) -> None:
        """Free the jobs that this member has without knowing: not of these sessions."""
        ...

    async def share(self) -> None:
        """Let any member have the jobs that wait for this one."""
        ...
