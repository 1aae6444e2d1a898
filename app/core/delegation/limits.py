"""Decides whether agents may go further among themselves; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.model.delegation import DelegationLimits

Limit = Literal["", "cycle", "depth", "turn", "tree", "hour", "time", "budget"]
"""What was reached; empty: nothing."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far agents have gone since a person last said something, with what is asked for now."""

    agents: frozenset[str]
    """Those that led to it: who asks, who asked that one, and so on."""
    depth: int
    """How deep it is."""
    by_turn: int
    """How many delegations the same turn began."""
    in_tree: int
    in_hour: int
    """How many began in the same place within an hour."""
    seconds: float
    """How long ago the first of the tree began."""
    usd: float = 0.0
    """What the tree has cost so far."""


def find_reached(standing: Standing, agent: str, limits: DelegationLimits) -> Limit:
    """Return the limit that keeps an agent from being asked."""
    if agent in standing.agents:
        return "cycle"
    if standing.depth > limits.depth:
        return "depth"
    if standing.by_turn >= limits.per_turn:
        return "turn"
    if standing.in_tree >= limits.per_tree:
        return "tree"
    if standing.in_hour >= limits.per_hour:
        return "hour"
    if standing.seconds >= limits.seconds:
        return "time"
    if limits.usd is not None and standing.usd >= limits.usd:
        return "budget"
    return ""
