"""Defines the JSON shapes of agents in the API: their entries and files."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from app.agents.agent import Agent
from app.agents.catalog import checkout_words
from app.config.agents import EntrySource
from app.model.agents import Availability, State


class AvailabilityOut(BaseModel):
    """Whether an agent can work, and if not, why and what to do."""

    state: State
    reason: str = ""
    remedy: str = ""

    @classmethod
    def of(cls, found: Availability) -> AvailabilityOut:
        """Show what is known."""
        return cls(state=found.state, reason=found.reason, remedy=found.remedy)


class CheckOut(BaseModel):
    """What one check found about an agent."""

    name: str
    ok: bool
    words: str = ""

    @classmethod
    def all_of(cls, found: Availability) -> list[CheckOut]:
        """Show all checks."""
        return [cls(name=each.name, ok=each.ok, words=each.words) for each in found.checks]


class AgentOut(BaseModel):
    """An agent."""

    id: str
    name: str
    display_name: str
    description: str
    default: bool
    command: str
    isolation: str
    checkout: str = ""
    limits: str = ""
    emoji: str = ""
    visible: bool = True
    """Whether it is offered where people choose an agent."""
    services: list[str]
    availability: AvailabilityOut
    version: str = ""
    """As the agent reported it when it was last tried; empty before that."""
    checks: list[CheckOut] = []
    source: EntrySource = "environment"
    """Where its entry is. One of the environment is changed there; a program that was found has
    none until it is added under its name, and the demo agent has none."""
    isolation_change: str = ""
    """How its isolation changed, until a person has seen it."""

    @classmethod
    def of(
        cls,
        agent: Agent,
        found: Availability,
        *,
        default: bool,
        isolation: str,
        services: Sequence[str],
        isolation_change: str = "",
    ) -> AgentOut:
        """Show an agent, with what is known of it now."""
        return cls(
            id=agent.id,
            name=agent.name,
            display_name=agent.title,
            description=agent.description,
            default=default,
            command=agent.config.program,
            isolation=isolation,
            checkout=checkout_words(agent.program),
            limits=agent.isolation.limit_words if agent.isolation else "",
            emoji=agent.emoji,
            visible=agent.visible,
            services=list(services),
            source=agent.config.source,
            isolation_change=isolation_change,
            availability=AvailabilityOut.of(found),
            version=found.version,
            checks=CheckOut.all_of(found),
        )
