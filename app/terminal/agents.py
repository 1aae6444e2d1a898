"""Describes agents in the terminal, with what is wrong with them, and stores their credentials."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from app.agents.checks import check_entry
from app.agents.isolation import NOT_ISOLATED, isolate_all
from app.agents.registry import Registry
from app.config import Configuration
from app.model.agents import Availability
from app.server.agent_shapes import AgentOut
from app.terminal.api import Api, agent_path
from app.terminal.framing import hint

INTERPRETERS: Final = ("python", "node", "npx", "uvx", "bun", "deno")
"""Programs whose name says little about the agent they run."""


def describe_agents(configuration: Configuration) -> list[AgentOut]:
    """Describe the agents, without a bridge."""
    # The isolation of an agent does not depend on the folder, and listing creates none.
    with tempfile.TemporaryDirectory() as folder:
        registry = Registry(
            configuration, isolations=isolate_all(configuration.moved(Path(folder)))
        )
    return [
        AgentOut.of(
            agent,
            Availability.of(check_entry(configuration, agent.config, agent.program)),
            default=agent is registry.default,
            isolation=registry.isolations[agent.id].words,
            services=["web"],
        )
        for agent in registry.values()
    ]


def find_problems(agents: Sequence[AgentOut]) -> Iterator[str]:
    """Say which agents are isolated otherwise than before, cannot work, or are not isolated."""
    for each in agents:
        if each.isolation_change:
            yield f"{each.name}: {each.isolation_change}"
    for each in agents:
        if words := f"{each.availability.reason} {each.availability.remedy}".strip():
            yield f"{each.name}: {hint(words)}"
    exposed: dict[str, list[str]] = {}
    for each in agents:
        if each.isolation.startswith(NOT_ISOLATED):
            exposed.setdefault(each.isolation, []).append(each.name)
    for words, names in exposed.items():
        yield f"{', '.join(names)}: {words}"


def show_command(configuration: Configuration, agent: str, command: str) -> str:
    """Show what an agent runs: of an interpreter also the script; never an argument."""
    entry = configuration.agents.get(agent)
    if entry is not None and entry.url:
        return f"at {entry.host}"
    if not is_installed(configuration, command):
        return f"{command} (not found)"
    name = Path(command).name
    if not name.startswith(INTERPRETERS) or entry is None:
        return name
    script = next((word for word in entry.command[1:] if not word.startswith("-")), "")
    return f"{name} {Path(script).name}".rstrip()


def is_here(configuration: Configuration, agent: str, command: str) -> bool:
    """Tell whether there is something to run: a command on this machine, or another machine."""
    entry = configuration.agents.get(agent)
    return (entry is not None and bool(entry.url)) or is_installed(configuration, command)


def is_installed(configuration: Configuration, command: str) -> bool:
    """Tell whether a command is on this machine."""
    return shutil.which(command, path=configuration.path) is not None


def set_credentials(
    configuration: Configuration, name: str, service: str, given: Mapping[str, str]
) -> None:
    """Give an agent what it has on a service.

    Raises:
        BridgeError: it was refused, or no bridge runs.
    """
    changes = {"credentials": {service: dict(given)}}
    Api(configuration).send(AgentOut, "PATCH", agent_path(name), json=changes)
