"""Translates settings for what agents do together: their lists and their limits."""

from __future__ import annotations

from app.agents.registry import Registry
from app.config import Configuration
from app.core.delegation.types import DelegationLimits
from app.core.tools.scope import Scope


def scope_of(configuration: Configuration, agent: str) -> Scope:
    """Return the lists of an agent."""
    entry = configuration.agents[agent]
    return Scope(
        tools_allow=entry.tools_allow,
        tools_deny=entry.tools_deny,
        capabilities_allow=entry.capabilities_allow,
        capabilities_deny=entry.capabilities_deny,
        agents_allow=entry.agents_allow,
        agents_deny=entry.agents_deny,
    )


def delegation_limits(configuration: Configuration) -> DelegationLimits:
    """Return how far agents may go among themselves."""
    limits = configuration.limits
    return DelegationLimits(
        depth=limits.delegation_depth,
        per_turn=limits.delegations_per_turn,
        per_tree=limits.delegations_per_tree,
        per_hour=limits.delegations_per_hour,
        seconds=60.0 * limits.delegation_minutes,
        usd=limits.delegation_usd,
    )


def description_of(registry: Registry, agent: str) -> str:
    """Return what an agent is for."""
    program = registry.program(agent)
    return registry.get(agent).description or (program.description if program else "")
