"""Labels agents with the name, emoji and colour of their identity files."""

from __future__ import annotations

from dataclasses import replace

from app.agents.files import IDENTITY, AgentFiles
from app.agents.identity import read_identity
from app.config import AgentConfig, Configuration
from app.errors import FileRefused


def label(configuration: Configuration, files: AgentFiles) -> Configuration:
    """Return the configuration with what each agent's file says of how people see it."""
    agents = {agent: _label(entry, files) for agent, entry in configuration.agents.items()}
    return replace(configuration, agents=agents)


def _label(entry: AgentConfig, files: AgentFiles) -> AgentConfig:
    try:
        found = files.read(entry.id, IDENTITY)
    except FileRefused:
        found = None
    identity = read_identity(found.text if found is not None else "")
    seen = {
        "own_name": identity.name,
        "own_emoji": identity.emoji,
        "own_colour": identity.colour,
    }
    return entry.model_copy(update=seen)
