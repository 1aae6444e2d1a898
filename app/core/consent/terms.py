"""Terms of an agent's work: what it may do, for how long, at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.model.policy import PRESETS, Policy


@dataclass(frozen=True, slots=True)
class Terms:
    """What the operator has set for one agent."""

    display_name: str = ""
    """The name people see; empty: the one in the settings."""
    visible: bool = True
    """Whether it is offered where people choose an agent."""
    policy: Policy = PRESETS["careful"]
    turn_seconds: float = 7200.0
    """How long it may work on one turn; waiting for people does not count."""
    idle_seconds: float = 1800.0
    """How long it lives while idle, or while it waits only for an answer."""
    ask_seconds: float = 168 * 3600.0
    """How long its asks can be answered."""
    budget_usd: float | None = None
    """What one session may spend before a person must say go on; None: no limit."""
    unasked: Literal["stop", "tell"] | None = None
    """What follows when it does unasked what the rules leave to people; None: nothing."""
    mode: str | None = None
    """The mode in which it works unless people choose another one."""
    confines_commands: bool = False
    """Whether it runs commands in its own sandbox, and asks before one leaves it."""
    memory: Literal["off", "ask", "auto"] = "off"
    """Whether it is asked after a turn what to remember, and whether people decide on that."""
    voice: Literal["own", "caller"] = "caller"
    """Who tells people what it did for another agent."""
    resume: bool = False
    """Whether turns stopped by its provider's limit resume by themselves afterwards."""
