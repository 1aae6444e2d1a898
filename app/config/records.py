"""What the store keeps of each agent: its id, its name, and the entry that people gave it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """One agent, present or removed."""

    id: str
    """What sessions, homes and stored rows refer to; never given to another agent."""
    name: str
    """What people and settings call it."""
    entry: Mapping[str, Any] | None = field(default=None, repr=False)
    """The keys of its entry, as they were given; None if only the settings describe it."""
    credentials: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """What it was given for services, by service and field."""
    former: tuple[str, ...] = ()
    """Names it had before."""
    default: bool = False
    """Whether people chose it as the default."""
    known_as: tuple[str, ...] = ()
    """Its driver, else its command, when it was last seen."""
    title: str = ""
    """What people called it, when it was last seen."""
    source: str = ""
    """Where its entry was when it was last seen."""
    isolation: str = ""
    """How it was isolated when it was last seen, in the codes of `app/agents/drift.py`."""
    isolation_was: str = ""
    """How it was isolated before that changed, until a person has seen the change."""
    removed_at: float | None = None
    """When it was removed, if it was."""

    @property
    def present(self) -> bool:
        """Whether it was not removed."""
        return self.removed_at is None


def new_id(name: str, taken: Iterable[str]) -> str:
    """Return an id for a new agent: its name, with a number if an earlier agent had that."""
    used = set(taken)
    if name not in used:
        return name
    number = next(number for number in range(2, len(used) + 3) if f"{name}-{number}" not in used)
    return f"{name}-{number}"


def merge(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with some keys changed: tables are merged key by key, None removes a key."""
    merged = dict(table)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            former = merged.get(key)
            merged[key] = merge(former if isinstance(former, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
