"""The terms on which an agent works: what it may do, for how long, at what cost."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.consent.policy import PRESETS, Policy


@dataclass(frozen=True, slots=True)
class Terms:
    """What the operator has set for one agent."""

    policy: Policy = PRESETS["careful"]
    turn_seconds: float = 7200.0
    """How long it may work on one turn; waiting for people does not count."""
    idle_seconds: float = 1800.0
    """How long it lives while nobody uses it, or while it waits for nothing but an answer."""
    ask_seconds: float = 168 * 3600.0
    """How long what it asks can be answered."""
    budget_usd: float | None = None
    """What one session may spend before somebody must say go on; None: as much as it takes."""
    resume: bool = False
    """Whether what its provider's limit stopped goes on by itself when the limit is over."""
