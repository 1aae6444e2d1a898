"""Adds an estimated cost to a report of tokens, for people to see.

An estimate never counts towards a budget: only what the agent itself reports does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.model.updates import Tokens, UsageUpdate

Estimate = Callable[[str, Tokens], float | None]
"""Estimates what tokens of a model cost, in dollars; None if that is not known."""


def complete(
    usage: UsageUpdate, *, has_cost: bool, model: str, estimate: Estimate
) -> UsageUpdate | None:
    """Complete the last report of a turn; None if it says nothing new."""
    if not has_cost and usage.cost is None and usage.tokens is not None:
        cost = estimate(model, usage.tokens)
        if cost is not None:
            return replace(usage, cost=cost, currency="USD", estimated=True)
    return usage if usage.used is not None else None
