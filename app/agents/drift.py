"""Notices when an agent is isolated differently from when it was last seen, and says so.

A change is said until a person has seen it: no agent loses its isolation silently.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.agents.isolation import Shelter
from app.children.sandbox import Plain
from app.config import AgentConfig, AgentRecord, Configuration

logger = logging.getLogger(__name__)

_WORDS: Final[Sequence[Mapping[str, str]]] = (
    {"none": "not isolated", "bubblewrap": "isolated (bubblewrap)"},
    {"own": "its own home", "user": "your home", "path": "a home that its sessions share"},
    {
        "host": "this machine's network",
        "open": "its own network",
        "restricted": "a list of hosts",
        "none": "no network",
    },
)
"""What the three codes of an isolation mean: sandbox, home, network."""


def note_isolation(
    configuration: Configuration, records: Sequence[AgentRecord], shelters: Mapping[str, Shelter]
) -> tuple[AgentRecord, ...]:
    """Return the records with how each agent is isolated now; log what changed."""
    agents = configuration.agents
    noted = tuple(
        note_one(record, agents[record.id], shelters[record.id]) if record.id in agents else record
        for record in records
    )
    for before, record in zip(records, noted, strict=True):
        if before.isolation != record.isolation and record.isolation_was:
            logger.warning("%s: %s", record.name, describe_change(record))
    return noted


def note_one(record: AgentRecord, entry: AgentConfig, shelter: Shelter) -> AgentRecord:
    """Return an agent's record with how it is isolated now, and before if that changed."""
    now = _measure(entry, shelter)
    was = record.isolation_was if record.isolation == now else record.isolation
    return replace(record, source=entry.source, isolation=now, isolation_was=was)


def describe_change(record: AgentRecord) -> str:
    """Say how an agent was isolated and how it is now; empty if no change is unseen."""
    if not record.isolation_was:
        return ""
    before, now = _spell(record.isolation_was), _spell(record.isolation)
    return f"Its isolation changed. Before: {before}. Now: {now}."


def _measure(entry: AgentConfig, shelter: Shelter) -> str:
    sandbox = "none" if isinstance(shelter.sandbox, Plain) else "bubblewrap"
    home = "path" if isinstance(entry.home, Path) else entry.home
    network = "host" if shelter.network is None else shelter.network.rules.mode
    return f"{sandbox} {home} {network}"


def _spell(codes: str) -> str:
    known = zip(_WORDS, codes.split(), strict=False)
    return ", ".join(words.get(code, code) for words, code in known)
