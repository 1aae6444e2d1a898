"""Translates settings for what agents do together: their tools, their lists and their limits."""

from __future__ import annotations

from collections.abc import Iterator

from app.core.repositories.forge import Forge
from app.core.tools.home import Homes
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
) -> Iterator[Tool]:
    """List the tools with which an agent works for the people who asked it."""
    yield from PlaceTools(context, homes).tools()
    yield from PeopleTools(engine).tools()
    yield from ProposalTools(context, forge).tools()
