"""Holds what the store keeps of each agent, and shows entries in the form of AGENTS_JSON.

No value of a variable is ever shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from app.config.agents import KEYS, AgentConfig
from app.config.permissions import PermissionRule

ENV = "env"


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
    """How it was isolated when it was last seen, in the codes of `app/agents/checks.py`."""
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


def show_entry(entry: AgentConfig, record: AgentRecord | None) -> dict[str, Any]:
    """Return the keys of an entry, with the names of its variables only.

    What people stored is shown as they gave it, the settings as they were understood.
    """
    if entry.source == "stored" and record is not None and record.entry is not None:
        keys = dict(record.entry)
    else:
        keys = _given(entry)
        keys.pop("default", None)
    return keys | ({ENV: sorted(keys[ENV])} if ENV in keys else {})


def _given(table: BaseModel) -> dict[str, Any]:
    """Return the keys that differ from their defaults."""
    usual = {
        key: field.get_default(call_default_factory=True)
        for key, field in type(table).model_fields.items()
        if key in KEYS or not isinstance(table, AgentConfig)
    }
    return {
        key: _plain(value)
        for key, default in usual.items()
        if (value := getattr(table, key)) != default
    }


def _plain(value: object) -> object:
    """Return a value as JSON has it."""
    match value:
        case PermissionRule():
            globs = {
                name: list(words)
                for name in PermissionRule.__slots__
                if name != "decision" and (words := getattr(value, name))
            }
            return {value.decision: globs}
        case BaseModel():
            return _given(value)
        case Path():
            return str(value)
        case tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return dict(value)
        case _:
            return value
