"""Sub-agents: sessions that an agent runs inside its own, as a tree; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, Literal

SubagentState = Literal["working", "waiting", "done", "failed", "stopped", "lost"]
"""`waiting` for people; `lost`: its agent's process ended before it did."""
OVER: Final = frozenset[SubagentState]({"done", "failed", "stopped", "lost"})
BELOW: Final = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
"""Between the names of an agent and of the sub-agents on the way to one of them."""
UNNAMED: Final = "sub-agent"
DEPTH: Final = 20
"""How deep a tree is read: agents refuse to nest much less deeply."""


@dataclass(frozen=True, slots=True)
class SubagentUpdate:
    """What changed about a sub-agent; fields that are None did not change."""

    key: str
    """The agent's id of its session."""
    parent: str | None = None
    """The sub-agent that started it; empty if the agent itself did."""
    title: str | None = None
    task: str | None = None
    answer: str | None = None
    state: SubagentState | None = None
    can_stop: bool | None = None
    """Whether it can be stopped alone."""
    cost: float | None = None
    currency: str | None = None


@dataclass(frozen=True, slots=True)
class Subagent:
    """One sub-agent as it is known."""

    key: str
    parent: str = ""
    title: str = ""
    task: str = ""
    answer: str = ""
    state: SubagentState = "working"
    can_stop: bool = False
    cost: float | None = None
    currency: str = ""
    id: int = 0
    """The bridge's own number of it; 0 before it is stored."""
    session: int = 0
    turn: int = 0
    """The turn that started it."""
    began_at: float = 0.0
    ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it works no more."""
        return self.state in OVER

    @property
    def name(self) -> str:
        """What people call it."""
        return self.title or UNNAMED


def apply(known: Subagent | None, update: SubagentUpdate) -> Subagent:
    """Return a sub-agent as it is after an update."""
    said = {each.name: getattr(update, each.name) for each in fields(update)}
    changed = {name: value for name, value in said.items() if value is not None}
    after = replace(known or Subagent(update.key), **changed)
    return replace(after, can_stop=False) if after.is_over else after


def line_of(key: str, known: Mapping[str, Subagent]) -> tuple[Subagent, ...]:
    """List the sub-agents on the way from the agent to one of them, which is the last."""
    found: list[Subagent] = []
    while (each := known.get(key)) is not None and each not in found and len(found) < DEPTH:
        found.insert(0, each)
        key = each.parent
    return tuple(found)


def path_of(key: str, known: Mapping[str, Subagent]) -> str:
    """Name a sub-agent by all that are on the way to it."""
    return BELOW.join(each.name for each in line_of(key, known))
