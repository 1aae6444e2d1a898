"""Says where an agent's entry comes from, and how to change an agent that has none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.config import AgentConfig, AgentsSource
from app.config.agents import EntrySource

_LABELS: Final[Mapping[EntrySource, str]] = {
    "found": "found on PATH",
    "demo": "comes with the bridge",
    "stored": "added",
}
_IN_SETTINGS: Final = "the settings describe {name}. Change it in AGENTS_JSON."
_BY_COMMAND: Final = "ACP_AGENT_COMMAND describes {name}. To change more, use AGENTS_JSON."
_FOUND: Final = (
    "{name} was found on PATH and has no entry. To change it, add it first: "
    "run `agent-bridge agents add {name}`, or use the button on its page."
)
_DEMO: Final = "{name} comes with the bridge and cannot be changed."


def label_origin(source: EntrySource, setting: AgentsSource) -> str:
    """Say in a few words where an agent comes from; `setting` has those of the settings."""
    return _LABELS.get(source, setting)


def explain_fixed(entry: AgentConfig, setting: AgentsSource) -> str:
    """Say why an agent cannot be changed here, and what to do; empty if it can."""
    if entry.source == "environment":
        words = _IN_SETTINGS if setting == "AGENTS_JSON" else _BY_COMMAND
    else:
        words = {"found": _FOUND, "demo": _DEMO}.get(entry.source, "")
    return words.format(name=entry.name)
