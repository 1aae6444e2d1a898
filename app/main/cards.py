"""Describes agents to people: those that are configured, and those that could be installed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from app.agents.admission import describe_change
from app.agents.catalog import AgentProgram, checkout_words, known_agents
from app.agents.enrolling import explain_fixed, label_origin
from app.agents.isolation import Shelter
from app.agents.registry import Registry
from app.config import Configuration
from app.core.adapters import Adapter
from app.model.delegation import SERVICE
from app.server.parts import AgentCard


def cards_of(
    registry: Registry, shelters: Mapping[str, Shelter], adapters: Mapping[str, Adapter]
) -> dict[str, AgentCard]:
    """Describe every agent."""
    configuration = registry.configuration
    changes = {record.id: describe_change(record) for record in registry.records}
    cards: dict[str, AgentCard] = {}
    for entry in registry:
        program = registry.program(entry.id)
        cards[entry.id] = AgentCard(
            id=entry.id,
            name=entry.name,
            display_name=registry.display_name(entry.id),
            description=entry.description or (program.description if program else ""),
            default=entry.id == configuration.default_agent,
            source=entry.source,
            origin=label_origin(entry.source, configuration.agents_source),
            fixed=explain_fixed(entry, configuration.agents_source),
            driver=program.title if program else "",
            model=entry.model or "",
            command=entry.command[0],
            isolation=shelters[entry.id].words,
            isolation_change=changes.get(entry.id, ""),
            checkout=checkout_words(program),
            limits=shelters[entry.id].limit_words,
            emoji=entry.emoji or entry.own_emoji,
            colour=entry.own_colour,
            visible=entry.visible,
            examples=program.examples if program else (),
            services=tuple(
                sorted(
                    name.partition(":")[0]
                    for name, adapter in adapters.items()
                    if adapter.agent == entry.id and not name.startswith(f"{SERVICE}:")
                )
            ),
        )
    return cards


def missing_agents(configuration: Configuration) -> Sequence[AgentProgram]:
    """List the known agents that are not installed on this machine."""
    present = {entry.driver for entry in configuration.agents.values()}
    return [
        program
        for program in known_agents()
        if program.discover
        and program.name not in present
        and not any(shutil.which(name, path=configuration.path) for name in program.match)
    ]
