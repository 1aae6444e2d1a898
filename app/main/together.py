"""Translates settings for what agents do together: their tools, their lists and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from app.agents.catalog import known_agents
from app.agents.files import AgentFiles
from app.agents.registry import Registry
from app.config import Configuration
from app.core.repositories.ports import Forge
from app.core.schedules.book import ScheduleBook
from app.core.tools.home import Homes
from app.core.tools.memory import MemoryTools
from app.core.tools.people import PeopleTools
from app.core.tools.place import PlaceTools
from app.core.tools.proposals import ProposalTools
from app.core.tools.schedules import ScheduleTools
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.turn_context import TurnContext
from app.model.delegation import DelegationLimits
from app.model.scope import Scope
from app.model.tools import WAITS_SECONDS, Tool, ToolExposure


def own_tools(
    context: TurnContext,
    engine: EmbeddedTurnEngine,
    homes: Homes,
    book: ScheduleBook,
    forge: Forge,
    files: AgentFiles,
) -> Iterator[Tool]:
    """List the tools with which an agent works for the people who asked it."""
    yield from MemoryTools(context, partial(_read_memory, files)).tools()
    yield from PlaceTools(context, homes).tools()
    yield from PeopleTools(engine).tools()
    yield from ProposalTools(context, forge).tools()
    yield from ScheduleTools(book, context.ledger, context.terms).tools()


def _read_memory(files: AgentFiles, agent: str) -> str:
    found = files.read(agent, "MEMORY.md")
    return "" if found is None else found.text


def scope_of(configuration: Configuration, agent: str) -> Scope:
    """Return which of the bridge's tools, and which other agents, an agent may use."""
    entry = configuration.agents[agent]
    return Scope(
        tools_allow=entry.tools_allow,
        tools_deny=entry.tools_deny,
        capabilities_allow=entry.capabilities_allow,
        capabilities_deny=entry.capabilities_deny,
        agents_allow=entry.agents_allow,
        agents_deny=entry.agents_deny,
    )


def exposure_of(configuration: Configuration, agent: str) -> ToolExposure:
    """Return how an agent gets the bridge's tools: as its entry says, else as is known of it."""
    entry = configuration.agents[agent]
    program = Registry(configuration, known_agents()).program(agent)
    return entry.tool_exposure or (program.tool_exposure if program else "tools")


def tool_seconds_of(configuration: Configuration, agent: str) -> float:
    """Return how long an agent waits for the result of a tool."""
    program = Registry(configuration, known_agents()).program(agent)
    return program.tool_seconds if program else WAITS_SECONDS


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
