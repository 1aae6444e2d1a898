"""`agents list`: the agents of the running bridge, or else of store and settings."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

from typer import Option

from app.acp.card import card_path, read_card
from app.agents.availability import check_entry
from app.agents.enrolling import label_origin
from app.agents.isolation import NOT_ISOLATED, shelter_all, shorten_isolation
from app.agents.registry import Registry
from app.config import Configuration
from app.model.agents import Availability
from app.model.wording import AVAILABILITY
from app.server.agent_shapes import AgentOut
from app.terminal.api import find_bridge
from app.terminal.framing import (
    Json,
    add_group,
    commands,
    hint,
    read_all_agents,
    show_json,
    show_table,
)

INTERPRETERS: Final = ("python", "node", "npx", "uvx", "bun", "deno")
"""Programs whose name says little about the agent they run."""

COMMANDS = commands()
agents = add_group(COMMANDS, "agents", "List, add, change, probe and log in agents.")


@agents.command("list")
def list_agents(
    *,
    every: Annotated[bool, Option("--all", help="Hidden agents too.")] = False,
    as_json: Json = False,
) -> None:
    """List agents, their commands and isolation."""
    configuration = read_all_agents()
    bridge = find_bridge(configuration)
    cards = describe_agents(configuration) if bridge is None else bridge.items(AgentOut, "/agents")
    if as_json:
        show_json(
            [
                {
                    **card.model_dump(mode="json"),
                    "found": _is_installed(configuration, card.command),
                    "probe": _probed(configuration, card.id),
                }
                for card in cards
            ]
        )
        return
    shown = [card for card in cards if every or card.visible]
    show_table(
        ("agent", "name", "state", "command", "version", "isolation", "services", "from", "probe"),
        [
            (
                f"{card.name} (default)" if card.default else card.name,
                f"{card.emoji} {card.display_name}".lstrip(),
                AVAILABILITY[card.availability.state],
                show_command(configuration, card.id, card.command),
                card.version or "-",
                shorten_isolation(card.isolation),
                ", ".join(card.services),
                label_origin(card.source, configuration.agents_source),
                _probed(configuration, card.id),
            )
            for card in shown
        ],
    )
    for line in find_problems(shown):
        sys.stderr.write(f"! {line}\n")
    if len(shown) < len(cards):
        sys.stderr.write(f"{len(cards) - len(shown)} more with --all.\n")


def describe_agents(configuration: Configuration) -> list[AgentOut]:
    """Describe the agents, without a bridge."""
    # The isolation of an agent does not depend on the folder, and listing creates none.
    with tempfile.TemporaryDirectory() as folder:
        registry = Registry(configuration, shelters=shelter_all(configuration.moved(Path(folder))))
    return [
        AgentOut.of(
            agent,
            Availability.of(check_entry(configuration, agent.config, agent.program)),
            default=agent is registry.default,
            isolation=registry.shelters[agent.id].words,
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
    if not _is_installed(configuration, command):
        return f"{command} (not found)"
    name, entry = Path(command).name, configuration.agents.get(agent)
    if not name.startswith(INTERPRETERS) or entry is None:
        return name
    script = next((word for word in entry.command[1:] if not word.startswith("-")), "")
    return f"{name} {Path(script).name}".rstrip()


def _is_installed(configuration: Configuration, command: str) -> bool:
    return shutil.which(command, path=configuration.path) is not None


def _probed(configuration: Configuration, agent: str) -> str:
    """Summarise the last probe of an agent, if it was of the command that is set now."""
    entry = configuration.agents.get(agent)
    card = read_card(card_path(configuration.shared_dir, agent))
    return card.words if card and entry and card.is_about(entry.command) else "not yet"
