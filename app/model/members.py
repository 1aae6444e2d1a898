"""Holds the bridges that share a database, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

COMMON: Final = "common"
"""The queue of all workers; each also has one by its own name."""


TASK: Final = "serve"
"""What a job asks for: that a member serves its session, if that waits."""


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
    leader: str
    """The leader; empty if there is none."""


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
    if another member runs a turn of the session, or was asked to."""
    has_moved: bool = False
    """Whether another member served the session last."""
