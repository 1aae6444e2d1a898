"""Agents as values, for tests that need no configuration."""

from __future__ import annotations

from typing import Any

from app.agents.agent import Agent
from app.config import AgentConfig


def make_agent(name: str, **given: Any) -> Agent:
    """Make an agent; what is no field of its own is a key of its entry."""
    own = {key: value for key, value in given.items() if key in Agent.__dataclass_fields__}
    entry = {key: value for key, value in given.items() if key not in own}
    return Agent(config=AgentConfig(name=name, id=entry.pop("id", name), **entry), **own)
