"""Translates settings for what agents do together: their tools, their lists and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from app.agents.files import AgentFiles
from app.core.repositories.forge import Forge
from app.core.tools.home import Homes
from app.core.tools.memory import MemoryTools
from app.core.tools.people import PeopleTools
from app.core.tools.place import PlaceTools
from app.core.tools.proposals import ProposalTools
from app.core.turns.engine import EmbeddedTurnEngine
from app.core.turns.turn_context import TurnContext
from app.model.agents import Tool


def own_tools(
    context: TurnContext,
    engine: EmbeddedTurnEngine,
    homes: Homes,
    forge: Forge,
    files: AgentFiles,
) -> Iterator[Tool]:
    """List the tools with which an agent works for the people who asked it."""
    yield from MemoryTools(context, partial(_read_memory, files)).tools()
    yield from PlaceTools(context, homes).tools()
    yield from PeopleTools(engine).tools()
    yield from ProposalTools(context, forge).tools()


def _read_memory(files: AgentFiles, agent: str) -> str:
    found = files.read(agent, "MEMORY.md")
    return "" if found is None else found.text
